// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/modelserver"
)

// plugin runs kubectl-chat as the person of this world.
func (w *world) plugin(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(bin, "kubectl-chat"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig)
	return cmd
}

// words is a reply of so many parts, one every so often.
func words(n int, every time.Duration) modelserver.Reply {
	chunks := make([]string, n)
	for i := range chunks {
		chunks[i] = "word" + string(rune('a'+i%26)) + " "
	}
	return modelserver.Reply{Steps: []modelserver.Step{modelserver.Say(chunks...)},
		DelayBetween: modelserver.Duration(every)}
}

func reply(r modelserver.Reply) modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{{Reply: r}}}
}

func TestApplyStreamAndGoOn(t *testing.T) {
	w := newWorld(t, reply(words(20, 20*time.Millisecond)))
	w.newChat("triage", "hello")
	w.ready("triage", 2)

	out := &growing{}
	send := w.plugin("send", "triage", "and then?")
	send.Stdout, send.Stderr = out, os.Stderr
	check.OK(t, send.Start())
	eventually(t, "the first words are shown", func() bool { return strings.Contains(out.String(), "worda wordb") })
	if strings.Contains(out.String(), "words") || len(w.history("triage")) != 3 {
		t.Errorf("the reply was not streamed: %q", out.String())
	}
	if err := send.Wait(); err != nil {
		t.Fatalf("kubectl chat send: %v\n%s", err, out.String())
	}
	w.ready("triage", 4)
	history := w.history("triage")
	if got, want := strings.TrimSpace(out.String()), strings.TrimSpace(text(&history[3])); got != want {
		t.Errorf("streamed  %q\ncommitted %q", got, want)
	}
	check.Equal(t, "calls of the model", 2, len(w.requests()))
	w.nothingLeft("triage")
}

func TestATurnOfSeveralSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{ToolResults: new(0)}, Reply: modelserver.Reply{Steps: []modelserver.Step{
			modelserver.Say("Let me look."), modelserver.Call("current_time", `{"timezone":"Europe/Berlin"}`),
		}}},
		{Reply: say("It is late.")},
	}})
	w.newChat("c", "what time is it?")
	w.ready("c", 4)
	history := w.history("c")
	result := history[2].Spec.Parts[0].ToolResult
	if history[2].Spec.Role != v1beta1.RoleTool || result.IsError || !strings.Contains(result.Output, "Europe/Berlin") {
		t.Errorf("the tool's message is %+v", history[2].Spec)
	}
	check.Equal(t, "the reply", "It is late.", text(&history[3]))
}

func TestGeneratorKillDuringStreamLosesOnlyTheAttempt(t *testing.T) {
	t.Parallel()
	localnode.Needed(t)
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Times: 1, Reply: words(2000, 20*time.Millisecond)},
		{Reply: say("Second try.")},
	}})
	w.newChat("c", "hello")
	w.eventually("the model is streaming", func() bool { return len(w.requests()) == 1 })
	kill(t, w.ns, w.chat("c").Status.Generation.Pod, "generator")
	chat := w.ready("c", 2)
	if chat.Status.History.Head != "c-1-2" || text(&w.history("c")[1]) != "Second try." {
		t.Errorf("the head is %s", chat.Status.History.Head)
	}
	w.nothingLeft("c")
}

func TestLosingTheGenerationPodLosesOnlyTheAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Times: 1, Reply: words(20000, 20*time.Millisecond)},
		{Reply: say("Second try.")},
	}})
	w.newChat("c", "hello")
	w.eventually("the model is streaming", func() bool { return len(w.requests()) == 1 })
	first := w.chat("c").Status.Generation.Pod
	pod := &corev1.Pod{ObjectMeta: w.meta(first)}
	check.OK(t, c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	w.ready("c", 2)
	g := w.history("c")[1].Spec.Generation
	if g.Pod == first || g.Attempt < 2 {
		t.Errorf("attempt %d of pod %s answered", g.Attempt, g.Pod)
	}
}

func TestManagerKillDuringCallCausesNoSecondCall(t *testing.T) {
	localnode.Needed(t)
	w := newWorld(t, reply(words(100, 30*time.Millisecond)))
	w.newChat("c", "hello")
	w.eventually("the model is streaming", func() bool { return len(w.requests()) == 1 })
	killManager(t)
	w.ready("c", 2)
	check.Equal(t, "calls of the model", 1, len(w.requests()))
	check.Equal(t, "the head", "c-1-1", w.chat("c").Status.History.Head)
}

func TestEditsDuringTheCallCostNoSecondCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, reply(words(50, 20*time.Millisecond)))
	w.newChat("c", "hello")
	w.eventually("the model is streaming", func() bool { return len(w.requests()) == 1 })
	chat := w.chat("c")
	before := chat.DeepCopy()
	chat.Labels = map[string]string{"team": "a"}
	chat.Annotations = map[string]string{"note": "b"}
	chat.Spec.SystemPrompt = "Be brief."
	check.OK(t, c.Patch(t.Context(), chat, client.MergeFrom(before)))
	w.ready("c", 2)
	check.Equal(t, "calls of the model", 1, len(w.requests()))
}

// soon is far less than a pod's grace period, or than the model would take.
const soon = 10 * time.Second

func TestChatDeletionCancelsModelCall(t *testing.T) {
	w := newWorld(t, reply(words(20000, 20*time.Millisecond)))
	chat := w.newChat("c", "hello")
	w.eventually("the model is streaming", func() bool { return len(w.requests()) == 1 })
	deleted := time.Now()
	check.OK(t, c.Delete(t.Context(), chat))
	w.eventually("the call is aborted", func() bool { return w.requests()[0].Aborted })
	if took := w.requests()[0].Ended.Sub(deleted); took > soon {
		t.Errorf("the call was aborted after %s", took)
	}
	w.eventually("its messages are removed", func() bool {
		var all v1beta1.ChatMessageList
		return c.List(t.Context(), &all, client.InNamespace(w.ns)) == nil && len(all.Items) == 0
	})
}

func TestCorrectedKeyGoesOnAfterARefusedOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{RequireKey: "sk-the-right-key-0123456789"})
	w.newChat("c", "hello")
	condition := w.stalled("c")
	if condition.Reason != "AuthenticationFailed" || !strings.Contains(condition.Message, `key "key" of Secret model`) {
		t.Errorf("Stalled says %s: %s", condition.Reason, condition.Message)
	}
	check.Lacks(t, w.describe(), "sk-e2e")
	check.Equal(t, "calls of the model", 1, len(w.requests()))
	var secret corev1.Secret
	check.OK(t, c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "model"}, &secret))
	secret.Data["key"] = []byte("sk-the-right-key-0123456789")
	check.OK(t, c.Update(t.Context(), &secret))
	w.say("c", "again", "again")
	w.ready("c", 3)
}

func TestMissingSecretHoldsItsChatAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, reply(say("Fine.")))
	broken := w.modelConfig("broken")
	broken.Spec.APIKey.SecretKeyRef.Name = "absent"
	w.create(broken)
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("broken"), Spec: v1beta1.ChatSpec{
		Prompt: "hello", ModelConfigRef: &v1beta1.ModelConfigReference{Name: "broken"},
	}})
	if condition := w.stalled("broken"); condition.Reason != "APIKeyMissing" ||
		!strings.Contains(condition.Message, "Secret absent") {
		t.Errorf("Stalled says %s: %s", condition.Reason, condition.Message)
	}
	w.newChat("good", "hello")
	w.ready("good", 2)
}

func TestTooLargeReplyIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Times: 1, Reply: modelserver.Reply{Steps: []modelserver.Step{{Text: &modelserver.Text{
			Repeat: &modelserver.Repeat{Text: "<a> & \"b\" ", Bytes: 3 << 20}, PieceBytes: 8 << 10,
		}}}}},
		{Reply: say("Fine.")},
	}})
	w.newChat("c", "hello")
	chat := w.ready("c", 2)
	truncated := false
	for _, condition := range chat.Status.Conditions {
		truncated = truncated || condition.Type == v1beta1.ConditionTruncated && condition.Reason == "ReplyTooLarge"
	}
	if m := w.history("c")[1]; !truncated || !m.Spec.Generation.Truncated || len(text(&m)) < 300<<10 {
		t.Errorf("truncated is %v, the reply has %d bytes", truncated, len(text(&m)))
	}
	w.say("c", "more", "more")
	w.ready("c", 4)
}

// growing is a buffer that may be read while a process writes to it.
type growing struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (g *growing) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.b.Write(p)
}

func (g *growing) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.b.String()
}
