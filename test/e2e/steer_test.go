// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/modelserver"
)

// patch changes an object as kubectl patch does.
func (w *world) patch(o client.Object, format string, args ...any) {
	w.t.Helper()
	if err := c.Patch(w.t.Context(), o,
		client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, format, args...))); err != nil {
		w.t.Fatalf("patching %s: %v", o.GetName(), err)
	}
}

func (w *world) phase(chat string, phase v1beta1.ChatPhase) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("chat %s is %s", chat, phase), func() bool { return w.chat(chat).Status.Phase == phase })
}

// slowThenQuick answers the first request slowly, word by word, and later ones at once.
func slowThenQuick() modelserver.Script {
	words := make([]string, 200)
	for i := range words {
		words[i] = fmt.Sprintf("word%d ", i)
	}
	return modelserver.Script{Rules: []modelserver.Rule{
		{Name: "slow", Times: 1, Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say(words...)},
			DelayBetween: modelserver.Duration(100 * time.Millisecond)}},
		{Name: "quick", Reply: say("Done.")},
	}}
}

// heard waits until somebody who follows the chat has read the beginning of the reply.
func (w *world) heard(chat string) {
	w.t.Helper()
	out := &growing{}
	tail := w.plugin("tail", chat)
	tail.Stdout, tail.Stderr = out, out
	check.OK(w.t, tail.Start())
	w.eventually("the first words are shown", func() bool { return strings.Contains(out.String(), "word0 word1") })
	_ = tail.Process.Kill()
	_ = tail.Wait() // It was killed.
}

func TestInterruptedReplyKeepsPartialText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, slowThenQuick())
	chat := w.newChat("c", "Tell me a long story.")
	w.heard("c")
	w.patch(chat, `{"metadata":{"annotations":{%q:"now"}}}`, v1beta1.AnnotationInterrupt)
	w.ready("c", 2)
	history := w.history("c")
	if said := text(&history[1]); !strings.HasPrefix(said, "word0 ") || strings.Contains(said, "word199") {
		t.Errorf("the partial reply is %q", said)
	}
	w.say("c", "again", "And now?")
	w.ready("c", 4)
	w.nothingLeft("c")
}

func TestInterruptedReplySurvivesGeneratorCrash(t *testing.T) {
	t.Parallel()
	localnode.Needed(t)
	w := newWorld(t, slowThenQuick())
	chat := w.newChat("c", "Tell me a long story.")
	w.heard("c")
	// It crashes once it is to stop: one that is started again before begins another attempt. Its relay goes on.
	pod := w.chat("c").Status.Generation.Pod
	signalTo(t, syscall.SIGSTOP, w.ns, pod, "generator")
	w.patch(chat, `{"metadata":{"annotations":{%q:"now"}}}`, v1beta1.AnnotationInterrupt)
	// On a busy machine, the interruption can be over by then: the manager waits for the reply for some seconds only.
	w.eventually("chat c is told to stop", func() bool { return w.chat("c").Status.Phase != v1beta1.ChatRunning })
	kill(t, w.ns, pod, "generator")
	w.ready("c", 2)
	history := w.history("c")
	if said := text(&history[1]); !strings.HasPrefix(said, "word0 ") ||
		history[1].Spec.Generation.Outcome != v1beta1.OutcomeInterrupted {
		t.Errorf("the partial reply is %q, %+v", said, history[1].Spec.Generation)
	}
	w.nothingLeft("c")
}

func TestEditingAndDeletingBeginTheConversationAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{})
	w.newChat("c", "first")
	w.ready("c", 2)
	w.say("c", "second", "second")
	w.ready("c", 4)
	reply := w.history("c")[3]
	check.OK(t, c.Delete(t.Context(), &reply))
	w.eventually("the reply was generated again", func() bool {
		st := w.chat("c").Status
		return st.Phase == v1beta1.ChatWaiting && st.History.Length == 4 && st.History.Head != reply.Name
	})
	w.patch(&v1beta1.ChatMessage{ObjectMeta: w.meta("c-prompt")}, `{"spec":{"content":"something else"}}`)
	w.eventually("only the edited message and its answer are left", func() bool {
		st := w.chat("c").Status
		return st.Phase == v1beta1.ChatWaiting && st.History.Length == 2 && st.Internal.Superseded == nil
	})
	requests := w.requests()
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "something else") ||
		strings.Contains(last, "second") {
		t.Errorf("the model was asked %s", last)
	}
}

func TestAClientAnswersAndAPersonApproves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{ToolResults: new(0)}, Reply: modelserver.Reply{Steps: []modelserver.Step{
			modelserver.Call("open_ticket", `{"title":"CNI down"}`), modelserver.Call("current_time", `{}`),
		}}},
		{Reply: say("Done.")},
	}})
	chat := &v1beta1.Chat{ObjectMeta: w.meta("c"),
		Spec: v1beta1.ChatSpec{Prompt: "Open a ticket.", Tools: &v1beta1.ChatTools{
			Client: []v1beta1.ClientTool{{Name: "open_ticket",
				InputSchema: &runtime.RawExtension{Raw: []byte(`{"type":"object"}`)}}},
			Approval: []v1beta1.ToolPattern{"current_time"},
		}}}
	w.create(chat)
	w.phase("c", v1beta1.ChatRequiresAction)
	for _, call := range w.chat("c").Status.RequiresAction.ToolCalls {
		if call.Kind == v1beta1.RequiresApproval {
			w.approveCall("c", call)
			continue
		}
		w.create(&v1beta1.ChatMessage{ObjectMeta: w.meta("results"), Spec: v1beta1.ChatMessageSpec{
			ChatRef: v1beta1.ChatReference{Name: "c"}, Role: v1beta1.RoleTool,
			Parts: []v1beta1.MessagePart{{Type: v1beta1.PartToolResult,
				ToolResult: &v1beta1.ToolResult{ID: call.ID, Output: `{"number":4711}`}}},
		}})
	}
	w.ready("c", 5) // The prompt, the calls, the client's result, Parley's own, the reply.
	requests := w.requests()
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "4711") ||
		strings.Contains(last, "no result") {
		t.Errorf("the model was asked %s", last)
	}
}

func TestNoteAppearsDuringStreamAndSkipsModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, slowThenQuick())
	everybody := &v1beta1.ChatClass{ObjectMeta: w.meta("everybody"),
		Spec: v1beta1.ChatClassSpec{Default: true, NamespacePreamble: "Be lawful."}}
	writer := &v1beta1.ChatClass{ObjectMeta: w.meta("writer"), Spec: v1beta1.ChatClassSpec{Preamble: "You write."}}
	w.create(everybody)
	w.create(writer)
	w.inForce(everybody)
	w.inForce(writer)
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("c"),
		Spec: v1beta1.ChatSpec{ChatClassName: "writer", Prompt: "Tell me a long story."}})
	out := &growing{}
	tail := w.plugin("tail", "c")
	tail.Stdout, tail.Stderr = out, out
	check.OK(t, tail.Start())
	w.eventually("the first words are shown", func() bool { return strings.Contains(out.String(), "word0 word1") })
	note := w.plugin("send", "c", "the customer has called", "--visibility", "Users")
	note.Stderr = os.Stderr
	check.OK(t, note.Run())
	w.eventually("the note is shown", func() bool { return strings.Contains(out.String(), "▎  the customer has called") })
	if got := w.chat("c").Status; got.Phase != v1beta1.ChatRunning || got.History.Length != 1 || len(got.Queue) > 0 {
		t.Errorf("the note was no note to the chat: %+v", got)
	}
	w.patch(w.chat("c"), `{"metadata":{"annotations":{%q:"now"}}}`, v1beta1.AnnotationInterrupt)
	w.ready("c", 2)
	w.say("c", "again", "And now?")
	w.ready("c", 4)
	_ = tail.Process.Kill()
	_ = tail.Wait() // It was killed.
	for i, r := range w.requests() {
		body := string(r.Body)
		if strings.Contains(body, "customer") || !strings.Contains(body, `"Be lawful.\n\nYou write.`) {
			t.Errorf("request %d is %s", i, body)
		}
	}
}

func TestPendingRetrySurvivesManagerRestartAndRunsOnce(t *testing.T) {
	localnode.Needed(t)
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Times: 1, Reply: modelserver.Reply{Fault: &modelserver.Fault{
			Kind: modelserver.FaultStatus, Status: 429, RetryAfter: &modelserver.RetryAfter{Seconds: new(4)},
		}}},
		{Reply: say("At last.")},
	}})
	w.newChat("c", "Are you there?")
	var retry *v1beta1.RetryStatus
	w.eventually("the retry is announced", func() bool { retry = w.chat("c").Status.Retry; return retry != nil })
	if retry.Attempt != 1 || retry.Reason != v1beta1.ErrorRateLimited {
		t.Errorf("the retry is %+v", retry)
	}
	killManager(t)
	w.ready("c", 2)
	reply := w.history("c")[1]
	if g := reply.Spec.Generation; g.Attempt != 2 || g.StartedAt.Before(&retry.At) || text(&reply) != "At last." {
		t.Errorf("the reply is %+v", reply.Spec)
	}
	check.Equal(t, "calls of the model", 2, len(w.requests()))
	w.nothingLeft("c")
}

func TestCompactedChatGoesOnAndIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "Write a summary"},
			Reply: say("They greeted each other.")},
		{Reply: say("Hello to you.")},
	}})
	chat := &v1beta1.Chat{ObjectMeta: w.meta("c"),
		Spec: v1beta1.ChatSpec{Prompt: "Hello there", Debug: &v1beta1.DebugSettings{Enabled: true}}}
	w.create(chat)
	w.ready("c", 2)
	w.kubectlChat("compact", "c")
	w.ready("c", 3)
	w.say("c", "more", "And now?")
	w.ready("c", 5)
	if roles := w.history("c"); roles[2].Spec.Role != v1beta1.RoleSystem ||
		text(&roles[2]) != "They greeted each other." {
		t.Errorf("the summary is %+v", roles[2].Spec)
	}
	requests := w.requests()
	last := string(requests[len(requests)-1].Body)
	if strings.Contains(last, "Hello there") || !strings.Contains(last, "They greeted each other.") ||
		!strings.Contains(last, "And now?") {
		t.Errorf("the model was asked %s", last)
	}
	var steps v1beta1.ChatDebugStepList
	w.eventually("each call is recorded", func() bool {
		return c.List(t.Context(), &steps, client.InNamespace(w.ns)) == nil && len(steps.Items) == 3
	})
	for i := range steps.Items {
		if raw, err := json.Marshal(&steps.Items[i]); err != nil || strings.Contains(string(raw), "sk-e2e-secret") {
			t.Errorf("recording %s holds the key (%v)", steps.Items[i].Name, err)
		}
	}
}

func TestTitleAndSummaryAreGeneratedAlongsideReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{ToolOffered: "set_title"},
			Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Call("set_title", `{"title":"Full disks"}`)}}},
		{Match: modelserver.Match{ToolOffered: "set_summary"},
			Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Call("set_summary",
				`{"summary":"Found a full disk"}`)}}},
		{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("The disk is full.")},
			DelayBefore: modelserver.Duration(300 * time.Millisecond)}},
	}})
	captioned := w.modelConfig("captioned")
	captioned.Spec.Titles, captioned.Spec.TurnSummaries = &v1beta1.CaptionSettings{}, &v1beta1.CaptionSettings{}
	w.create(captioned)
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{
		Prompt: "Why does nothing start?", ModelConfigRef: &v1beta1.ModelConfigReference{Name: "captioned"},
	}})
	w.ready("c", 2)
	w.eventually("the chat has a title, and its turn a summary", func() bool {
		st := w.chat("c").Status
		return st.Title == "Full disks" && st.TitleSource == v1beta1.TitleFromModel && st.Turn.Summary == "Found a full disk"
	})
	check.Equal(t, "calls of the model", 3, len(w.requests()))
	w.nothingLeft("c")
}
