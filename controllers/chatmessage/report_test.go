// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/text/content"
	"parley.dev/parley/test/kit/chattest"
)

// told is a User message that says how the turn ended which was resumed at that version, if it was.
func told(chat v1beta1.ChatStatus, result v1beta1.TurnResult) *v1beta1.ChatMessage {
	m := &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: chat.Turn.Message, Generation: 1}}
	m.Spec = v1beta1.ChatMessageSpec{Role: v1beta1.RoleUser, Content: "q"}
	conditions.Commit(&m.Status, "uid", &v1beta1.CommittedMessage{Message: m.Name, Parent: chat.Turn.Parent,
		Position: chat.Turn.Index, HistoryVersion: chat.Turn.HistoryVersion, ContentHash: content.Hash(&m.Spec)})
	m.Status.ResumedVersion = chat.Internal.Turn.ResumedVersion
	conditions.Message(&m.Status, conditions.OfTurn(&v1beta1.TurnOutcome{Result: result}), 1, time.Time{})
	return m
}

func TestStaleChatTakesNoFinalStatusBack(t *testing.T) {
	turn := func(version, resumed int64) v1beta1.ChatStatus {
		return v1beta1.ChatStatus{
			Turn:     &v1beta1.TurnStatus{Message: "q", HistoryVersion: version},
			Internal: v1beta1.ChatInternalStatus{Turn: v1beta1.TurnInternalStatus{ResumedVersion: resumed}},
		}
	}
	for name, c := range map[string]struct {
		message *v1beta1.ChatMessage
		view    v1beta1.ChatStatus
		changed bool // The message was changed since, in another way than its content.
		want    v1beta1.ConditionReason
	}{
		"the turn was resumed since the view": {told(turn(1, 9), v1beta1.TurnAnswered), turn(1, 0), false,
			v1beta1.ReasonAnswered},
		"and the message was changed": {told(turn(1, 9), v1beta1.TurnAnswered), turn(1, 0), true,
			v1beta1.ReasonAnswered},
		"the turn ended since the view": {told(turn(3, 0), v1beta1.TurnInterrupted), turn(3, 0), false,
			v1beta1.ReasonInterrupted},
		"the turn ended, and the message changed": {told(turn(3, 0), v1beta1.TurnInterrupted), turn(3, 0), true,
			v1beta1.ReasonInterrupted},
		"an edit was committed since the view": {told(turn(5, 0), v1beta1.TurnAnswered), turn(3, 0), false,
			v1beta1.ReasonAnswered},
		"the message was committed again": {told(turn(3, 0), v1beta1.TurnAnswered), turn(5, 0), false,
			v1beta1.ReasonAnswering},
		"the turn was resumed since the message": {told(turn(3, 0), v1beta1.TurnAnswered), turn(3, 7), false,
			v1beta1.ReasonAnswering},
		"resumed once more since the message's end": {told(turn(3, 7), v1beta1.TurnAnswered), turn(3, 9), false,
			v1beta1.ReasonAnswering},
	} {
		t.Run(name, func(t *testing.T) {
			if c.changed {
				c.message.Generation = 2
			}
			c.view.Internal.Turn.ContentHash = c.message.Status.ContentHash
			s := &scope{message: c.message, chat: &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{UID: "uid"}, Status: c.view}}
			next := c.message.DeepCopy()
			if s.noteChat(); !settled(s) {
				if summary, ok := describe(&next.Status, s); ok {
					conditions.Message(&next.Status, summary, next.Generation, time.Time{})
				}
			}
			if got := v1beta1.ReasonOf(meta.FindStatusCondition(next.Status.Conditions,
				v1beta1.ConditionReady)); got != c.want {
				t.Errorf("the message says %s, want %s", got, c.want)
			}
		})
	}
}

func TestMessageBehindARefusedPromptWaits(t *testing.T) {
	for reason, want := range map[v1beta1.ConditionReason]v1beta1.ConditionReason{
		v1beta1.ReasonPromptRejected:     v1beta1.ReasonWaitingForChat,
		v1beta1.ReasonPromptNameConflict: v1beta1.ReasonWaitingForChat,
		v1beta1.ReasonStarting:           "", // The chat takes it up at any moment.
	} {
		chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		chat.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionUnknown,
			Reason: string(reason), Message: "of its prompt"}}
		s := &scope{chat: chat, message: &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "more"},
			Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleUser}}}
		var st v1beta1.ChatMessageStatus
		summary, told := describe(&st, s)
		if told != (want != "") || summary.Reason != want || told &&
			(st.State != v1beta1.MessagePending || !strings.Contains(summary.Message, "cannot begin: of its prompt")) {
			t.Errorf("%s: the message is %s and says %+v", reason, st.State, summary)
		}
	}
}

// The chat waits for the first hold that ends.
func TestHeldOpenMessageReportsItsOwnHold(t *testing.T) {
	m := asked()
	m.Annotations = map[string]string{v1beta1.AnnotationHoldUntil: "2030-01-01T00:07:00Z"}
	chat := chattest.Chat("c")
	until := metav1.NewTime(time.Date(2030, 1, 1, 0, 5, 0, 0, time.UTC))
	chat.Status.Wait = &v1beta1.ChatWait{For: v1beta1.WaitForEdit, Until: &until}
	summary, told := describe(&m.Status, &scope{chat: chat, message: m})
	if !told || summary.Reason != v1beta1.ReasonWaitingForEdit || !strings.HasSuffix(summary.Message, "00:07:00Z") {
		t.Errorf("the message says %+v", summary)
	}
}

func TestPreviousTurnsMessageReportsItsOutcome(t *testing.T) {
	m := &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "q", Generation: 1}}
	m.Spec = v1beta1.ChatMessageSpec{Role: v1beta1.RoleUser, Content: "q"}
	chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "uid"}}
	chat.Status.Turn = &v1beta1.TurnStatus{Message: "next", Parent: "c-3-1", Index: 4, HistoryVersion: 5}
	chat.Status.Internal.Tail = []v1beta1.CommittedMessage{{Message: "next", Parent: "c-3-1", Position: 4,
		HistoryVersion: 5, PreviousTurn: &v1beta1.TurnOutcome{Message: "q", Result: v1beta1.TurnStoppedAfterTool,
			StoppedBy: "plan"}}}
	reply := chattest.Generated("c-3-1", v1beta1.RoleAssistant)
	reply.Spec.Generation.ChatUID = "uid"
	reply.Spec.Follows = []v1beta1.CommittedMessage{{Message: "q", Parent: "c-1-1", Position: 2, HistoryVersion: 3,
		ContentHash: content.Hash(&m.Spec), CallsCanceledReasonBefore: v1beta1.CallsTimedOut}}
	s := &scope{message: m, chat: chat}
	s.noteChat()
	s.noteCommits(reply.Spec.Follows)
	if settled(s) || atRest(s) {
		t.Fatal("there is nothing left to say")
	}
	summary, ok := describe(&m.Status, s)
	if !ok || summary.Reason != v1beta1.ReasonStoppedAfterTool || !strings.Contains(summary.Message, "plan") {
		t.Errorf("the message says %+v", summary)
	}
	want := v1beta1.ChatMessageStatus{State: v1beta1.MessageCommitted, ChatUID: "uid", Parent: "c-1-1",
		Index: new(int64(2)), HistoryVersion: 3, ContentHash: content.Hash(&m.Spec),
		CallsCanceledReasonBefore: v1beta1.CallsTimedOut}
	if !equality.Semantic.DeepEqual(m.Status, want) {
		t.Errorf("its status is %+v, want %+v", m.Status, want)
	}
	if conditions.Message(&m.Status, summary, 1, time.Time{}); !settled(s) {
		t.Error("it is said again")
	}
	m.Generation, m.Spec.Content = 2, "another question"
	if _, ok := describe(&m.Status, s); ok {
		t.Error("an edit, with which the conversation begins again, is answered with the old end")
	}
}

func TestAnsweringIsReportedPromptlyDespiteClockSkew(t *testing.T) {
	r := &Reconciler{Now: func() time.Time { return chattest.Now }}
	for name, c := range map[string]struct {
		begun time.Duration
		want  time.Duration
	}{
		"it has just begun":                       {0, DefaultReportAfter},
		"it began three seconds ago":              {-3 * time.Second, DefaultReportAfter - 3*time.Second},
		"it begins in an hour by another's clock": {time.Hour, DefaultReportAfter},
	} {
		chat := answering(func(st *v1beta1.ChatStatus) {
			st.Generation.StartedAt = metav1.NewMicroTime(chattest.Now.Add(c.begun))
		})
		if got := r.tooEarly(&scope{chat: chat, message: asked()}); got != c.want {
			t.Errorf("%s: in %s, want %s", name, got, c.want)
		}
	}
}

func TestChatSaysWhichRepliesItsTailFollows(t *testing.T) {
	chat := &v1beta1.Chat{}
	chat.Status.History.Head = "c"
	chat.Status.Internal.Tail = []v1beta1.CommittedMessage{{Message: "b", Parent: "a1"}, {Message: "c", Parent: "b"}}
	for name, want := range map[string]bool{"c": true, "b": true, "a1": true, "a": false, "": false} {
		if got := endsWith(chat, name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
