// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

var now = chattest.Now

// world plays a chat through passes, as the reconciler and the pods would.
type world struct {
	t    *testing.T
	chat *v1beta1.Chat
	last Plan
	f    Facts
	now  time.Time
	// facts are those of every pass.
	facts func(*Facts)
}

// later passes when the time has gone on.
func (w *world) later(d time.Duration) *world {
	w.t.Helper()
	w.now = w.now.Add(d)
	return w.pass(nil)
}

// at is the time after a wait.
func (w *world) at(wait time.Duration) *metav1.MicroTime {
	return new(metav1.NewMicroTime(w.now.Add(wait)))
}

func at(wait time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(now.Add(wait))) }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, now: now, chat: chattest.Chat("c", chattest.UID("u"), func(c *v1beta1.Chat) { c.Generation = 1 })}
}

// pass advances the chat with the facts that change sets, and writes the status.
func (w *world) pass(change func(*Facts)) *world {
	w.t.Helper()
	w.f = Facts{Chat: w.chat, Model: &Model{Alternative: Alternative{Config: "default", Name: "m"}}, Now: w.now}
	for _, queued := range w.chat.Status.Queue {
		w.f.Queued = append(w.f.Queued, Message{Name: queued.Name, Interrupts: queued.Interrupts,
			ContentHash: "hash of " + queued.Name})
	}
	for _, change := range []func(*Facts){w.facts, change} {
		if change != nil {
			change(&w.f)
		}
	}
	w.last = w.decide()
	w.chat = w.chat.DeepCopy()
	w.chat.Status = w.last.Status
	st := &w.chat.Status
	if st.Turn == nil && !reflect.ValueOf(st.Internal.Turn).IsZero() ||
		st.Generation == nil && st.Retry == nil && !reflect.ValueOf(st.Internal.Attempt).IsZero() {
		w.t.Errorf("a turn or an attempt that is no more is remembered: %+v", st.Internal)
	}
	return w
}

// remembered is what the status remembers of the attempts at the step.
func (w *world) remembered() *v1beta1.AttemptInternalStatus { return &w.chat.Status.Internal.Attempt }

// decide provides what the plan asks for until it is final, as the reconciler does:
// what the test does not know is not there.
func (w *world) decide() Plan {
	w.t.Helper()
	for {
		before := printed(w.t, w.f)
		plan, err := Advance(w.f)
		if err != nil {
			w.t.Fatal(err)
		}
		if after := printed(w.t, w.f); after != before { // The reconciler decides from them once more.
			w.t.Errorf("Advance changed its facts from\n%s\nto\n%s", before, after)
		}
		if plan.Asks.Nothing() {
			return plan
		}
		provide(&w.f, &plan.Asks)
	}
}

func provide(f *Facts, asks *Asks) {
	f.PromptMissing = false
	for _, name := range asks.Models {
		f.Named = maps.Clone(f.Named)
		if f.Named == nil {
			f.Named = map[string]*Model{}
		}
		f.Named[name] = nil
	}
	for _, name := range asks.SubChats {
		f.SubChats = maps.Clone(f.SubChats)
		if f.SubChats == nil {
			f.SubChats = map[string]bool{}
		}
		f.SubChats[name] = false
	}
	f.SummaryName = cmp.Or(asks.Summary, f.SummaryName)
	if asks.Calls != "" {
		f.CallsOf = asks.Calls
	}
	if asks.Workspace {
		f.Workspace = &Workspace{}
	}
	if asks.Pod {
		f.Pod = "pod"
	}
}

// printed are the facts, with all that they point at.
func printed(t *testing.T, f Facts) string {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (w *world) say(names ...string) *world {
	w.t.Helper()
	return w.pass(func(f *Facts) { f.Open = messages(false, names...) })
}

// cutIn says something that interrupts.
func (w *world) cutIn(names ...string) *world {
	w.t.Helper()
	return w.pass(func(f *Facts) { f.Open = messages(true, names...) })
}

func messages(interrupts bool, names ...string) (all []Message) {
	for _, name := range names {
		all = append(all, Message{Name: name, Interrupts: interrupts, ContentHash: "hash of " + name})
	}
	return all
}

// answer passes with the result of the attempt under way.
func (w *world) answer(replies ...chattest.Reply) *world {
	w.t.Helper()
	return w.pass(func(f *Facts) { f.Result = chattest.Answer(w.chat, replies...) })
}

// want compares the state in one line: phase, version, head, length, attempt and action, queue.
// line is the chat in one line: phase, version, head and length of the history, attempt and queue.
func (w *world) line() string {
	st := w.chat.Status
	attempt := "-"
	if g := st.Generation; g != nil {
		attempt = fmt.Sprintf("%d:%s", g.Attempt, g.Action)
	}
	queue := []string{}
	for _, q := range st.Queue {
		queue = append(queue, q.Name)
	}
	return fmt.Sprintf("%s v%d %s/%d %s %v", st.Phase, st.History.Version, st.History.Head, st.History.Length, attempt,
		queue)
}

func (w *world) want(line string) *world {
	w.t.Helper()
	if got := w.line(); got != line {
		w.t.Errorf("got  %s\nwant %s", got, line)
	}
	return w
}

func TestAnEmptyChatWaits(t *testing.T) {
	newWorld(t).pass(nil).want("Waiting v0 /0 - []")
}

func TestWaitingWithAPromptIsNotReady(t *testing.T) {
	w := newWorld(t)
	w.chat.Spec.Prompt = "hello"
	w.pass(nil).want("Waiting v0 /0 - []")
	if ready := meta.FindStatusCondition(w.chat.Status.Conditions,
		v1beta1.ConditionReady); v1beta1.ReasonOf(ready) != v1beta1.ReasonStarting {
		t.Errorf("Ready is %+v", ready)
	}
}

func TestTurnOfOneStepTakesTwoWrites(t *testing.T) {
	w := newWorld(t).say("a").want("Running v1 a/1 1:GenerateAssistant []")
	if turn := w.chat.Status.Turn; turn.Message != "a" || turn.Parent != "" || turn.Index != 0 ||
		turn.HistoryVersion != 1 {
		t.Errorf("turn is %+v", turn)
	}
	w.answer(chattest.Says("hi")).want("Waiting v2 c-1-1/2 - []")
	if st := w.chat.Status; st.Turn.Result != v1beta1.TurnAnswered || st.LastReply != "hi" || st.Usage.TotalTokens != 15 {
		t.Errorf("status is %+v", st)
	}
}

func TestCommitStartsNextStepInSameWrite(t *testing.T) {
	w := newWorld(t).say("a")
	w.answer(chattest.Calls("1", "2")).want("Running v2 c-1-1/2 1:ExecuteTools []")
	w.answer(chattest.Results("1")).want("Running v3 c-2-1/3 1:GenerateAssistant []")
	w.answer(chattest.Says("hi")).want("Waiting v4 c-3-1/4 - []")
}

func TestCompletedTurnPromotesQueueInSameWrite(t *testing.T) {
	w := newWorld(t).say("a").say("b", "c").want("Running v1 a/1 1:GenerateAssistant [b c]")
	w.answer(chattest.Says("hi")).want("Running v3 b/3 1:GenerateAssistant [c]")
	if turn := w.chat.Status.Turn; turn.Parent != "c-1-1" || turn.Index != 2 || turn.HistoryVersion != 3 {
		t.Errorf("turn is %+v", turn)
	}
	w.wantPrevious("a", v1beta1.TurnAnswered)
}

func TestFirstMessageStartsTurnAndOthersAreQueued(t *testing.T) {
	newWorld(t).say("a", "b").want("Running v1 a/1 1:GenerateAssistant [b]")
}

func TestErrorKeepsQueueUntilNewMessageResumes(t *testing.T) {
	w := newWorld(t).say("a").say("b").answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed)).
		want("Error v1 a/1 - [b]")
	if e := w.chat.Status.LastError; e == nil || e.Reason != v1beta1.ErrorAuthenticationFailed {
		t.Errorf("last error is %+v", e)
	}
	w.say("c").want("Running v2 b/2 1:GenerateAssistant [c]")
	if w.chat.Status.LastError != nil {
		t.Error("the error was not cleared")
	}
	if !w.last.PodAfter.Equal(now) {
		t.Errorf("after a refused key the pod may have been created before %v", w.last.PodAfter)
	}
}

func TestLostAttemptIsRetriedWithNewFence(t *testing.T) {
	for name, lose := range map[string]func(*world){
		"the pod is gone":        func(w *world) { w.pass(func(f *Facts) { f.PodLost = true }) },
		"the pod itself says so": func(w *world) { w.answer(chattest.Lost()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a")
			old := chattest.Answer(w.chat, chattest.Says("hi"))
			lose(w)
			w.want("Running v1 a/1 2:GenerateAssistant []")
			w.pass(func(f *Facts) { f.Result = old }).want("Running v1 a/1 2:GenerateAssistant []")
			w.answer(chattest.Says("hi")).want("Waiting v2 c-1-2/2 - []")
		})
	}
}

func TestAttemptsAreNotLostForEver(t *testing.T) {
	w := newWorld(t).say("a")
	for range v1beta1.DefaultMaxAttempts {
		w.pass(func(f *Facts) { f.PodLost = true }).later(time.Minute)
	}
	w.want("Error v1 a/1 - []")
	if got := w.chat.Status.LastError.Reason; got != v1beta1.ErrorAttemptsExhausted {
		t.Errorf("reason is %s", got)
	}
}

func TestAResultCountsOnlyUnderTheCurrentFence(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.ChatMessage){
		"another chat": func(m *v1beta1.ChatMessage) { m.Spec.Generation.ChatUID = "v" },
		"another name": func(m *v1beta1.ChatMessage) { m.Name, m.Spec.Generation.Attempt = "c-1-9", 9 },
	} {
		t.Run(name, func(t *testing.T) {
			newWorld(t).say("a").answer(chattest.Says("hi"), change).want("Running v1 a/1 1:GenerateAssistant []")
		})
	}
}

func TestTakenResultNameBeginsAnotherAttempt(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.ChatMessage){
		"another version": func(m *v1beta1.ChatMessage) { m.Spec.Generation.HistoryVersion = 9 },
		"another attempt": func(m *v1beta1.ChatMessage) { m.Spec.Generation.Attempt = 9 },
		"another pod":     func(m *v1beta1.ChatMessage) { m.Spec.Generation.Pod = "other" },
		"another action":  func(m *v1beta1.ChatMessage) { m.Spec.Generation.Action = v1beta1.ActionExecuteTools },
		"another parent":  func(m *v1beta1.ChatMessage) { m.Spec.Parent = "other" },
		"not generated":   func(m *v1beta1.ChatMessage) { m.Spec.Generation = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a").answer(chattest.Says("hi"), change).want("Running v1 a/1 2:GenerateAssistant []")
			if n := w.last.Notices; len(n) != 1 ||
				!strings.Contains(n[0].Note, "message c-1-1, which it did not create, has its name") {
				t.Errorf("it gives notice of %+v", n)
			}
			w.answer(chattest.Says("hi")).want("Waiting v2 c-1-2/2 - []")
		})
	}
}

func TestTheLimitOfStepsEndsTheTurnNormally(t *testing.T) {
	w := newWorld(t)
	w.chat.Spec.Limits = &v1beta1.ChatLimits{MaxSteps: new(int32(1))}
	w.say("a").answer(chattest.Calls("1")).answer(chattest.Results("1")).want("Waiting v3 c-2-1/3 - []")
	if got := w.chat.Status.Turn.Result; got != v1beta1.TurnMaxStepsReached {
		t.Errorf("result is %s", got)
	}
}

func TestTheQueueHasALimit(t *testing.T) {
	w := newWorld(t)
	w.chat.Spec.Limits = &v1beta1.ChatLimits{MaxQueue: new(int32(1))}
	w.say("a").say("b", "c").want("Running v1 a/1 1:GenerateAssistant [b]")
	if len(w.last.Rejected) != 1 || w.last.Rejected[0].Message != "c" {
		t.Errorf("rejected %v", w.last.Rejected)
	}
}

func TestADeletedQueuedMessageLeavesTheQueue(t *testing.T) {
	w := newWorld(t).say("a").say("b", "c")
	w.pass(func(f *Facts) { f.Queued = messages(false, "c") }).want("Running v1 a/1 1:GenerateAssistant [c]")
}

func TestMissingModelKeepsMessagesOpen(t *testing.T) {
	missing := &v1beta1.GenerationError{Reason: v1beta1.ErrorModelConfigNotFound, Message: "create one"}
	w := newWorld(t).pass(func(f *Facts) { f.Open, f.Model, f.Blocked = messages(false, "a"), nil, missing }).
		want("Waiting v0 /0 - []")
	if len(w.last.Taken) != 0 {
		t.Errorf("took %v", w.last.Taken)
	}
}

func TestTruncatedConditionClearsOnNextReply(t *testing.T) {
	w := newWorld(t).say("a").
		answer(chattest.Says("hi"), func(m *v1beta1.ChatMessage) { m.Spec.Generation.Truncated = true })
	if !truncated(w.chat) || len(w.last.Notices) != 1 || w.last.Notices[0].Reason != v1beta1.EventReplyTooLarge {
		t.Errorf("conditions %+v, notices %+v", w.chat.Status.Conditions, w.last.Notices)
	}
	if w.say("b").answer(chattest.Says("hi")); truncated(w.chat) {
		t.Error("the mark stayed")
	}
}

func TestNothingNewChangesNothing(t *testing.T) {
	w := newWorld(t).say("a")
	before := w.chat.Status.DeepCopy()
	w.pass(nil)
	if !equality.Semantic.DeepEqual(&w.chat.Status, before) {
		t.Errorf("the status changed to %+v", w.chat.Status)
	}
	if len(w.last.Notices) != 0 {
		t.Errorf("notices %v", w.last.Notices)
	}
}

func truncated(chat *v1beta1.Chat) bool {
	for _, c := range chat.Status.Conditions {
		if c.Type == v1beta1.ConditionTruncated {
			return true
		}
	}
	return false
}
