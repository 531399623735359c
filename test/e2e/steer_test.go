// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
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

func (w *world) phase(chat string, phase v1alpha1.ChatPhase) {
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
	w.patch(chat, `{"metadata":{"annotations":{%q:"now"}}}`, v1alpha1.AnnotationInterrupt)
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
	w.patch(chat, `{"metadata":{"annotations":{%q:"now"}}}`, v1alpha1.AnnotationInterrupt)
	w.phase("c", v1alpha1.ChatInterrupting)
	kill(t, w.ns, pod, "generator")
	w.ready("c", 2)
	history := w.history("c")
	if said := text(&history[1]); !strings.HasPrefix(said, "word0 ") ||
		history[1].Spec.Generation.Outcome != v1alpha1.OutcomeInterrupted {
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
		return st.Phase == v1alpha1.ChatWaiting && st.History.Length == 4 && st.History.Head != reply.Name
	})
	w.patch(&v1alpha1.ChatMessage{ObjectMeta: w.meta("c-prompt")}, `{"spec":{"content":"something else"}}`)
	w.eventually("only the edited message and its answer are left", func() bool {
		st := w.chat("c").Status
		return st.Phase == v1alpha1.ChatWaiting && st.History.Length == 2 && st.Internal.Superseded == nil
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
	chat := &v1alpha1.Chat{ObjectMeta: w.meta("c"),
		Spec: v1alpha1.ChatSpec{Prompt: "Open a ticket.", Tools: &v1alpha1.ChatTools{
			Client: []v1alpha1.ClientTool{{Name: "open_ticket",
				InputSchema: &runtime.RawExtension{Raw: []byte(`{"type":"object"}`)}}},
			Approval: []v1alpha1.ToolPattern{"current_time"},
		}}}
	w.create(chat)
	w.phase("c", v1alpha1.ChatRequiresAction)
	for _, call := range w.chat("c").Status.RequiresAction.ToolCalls {
		if call.Kind == v1alpha1.RequiresApproval {
			w.approveCall("c", call)
			continue
		}
		w.create(&v1alpha1.ChatMessage{ObjectMeta: w.meta("results"), Spec: v1alpha1.ChatMessageSpec{
			ChatRef: v1alpha1.ChatReference{Name: "c"}, Role: v1alpha1.RoleTool,
			Parts: []v1alpha1.MessagePart{{Type: v1alpha1.PartToolResult,
				ToolResult: &v1alpha1.ToolResult{ID: call.ID, Output: `{"number":4711}`}}},
		}})
	}
	w.ready("c", 5) // The prompt, the calls, the client's result, Parley's own, the reply.
	requests := w.requests()
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "4711") ||
		strings.Contains(last, "no result") {
		t.Errorf("the model was asked %s", last)
	}
}
