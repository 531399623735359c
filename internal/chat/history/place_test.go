// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// chat has the turn of message q, the fourth of its history, which a client has brought results r for, the sixth. What
// was behind index 6 before version 9 has been cut off.
func chat() *v1beta1.Chat {
	c := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}}
	c.Status.History = v1beta1.HistoryStatus{Head: "r", Length: 6, Version: 9}
	c.Status.Turn = &v1beta1.TurnStatus{Message: "q", Parent: "c-3-1", Index: 3, HistoryVersion: 5}
	c.Status.Internal.Superseded = &v1beta1.SupersededRange{FromIndex: 6, BeforeVersion: 9}
	c.Status.Internal.Tail = []v1beta1.CommittedMessage{
		{Message: "r", Parent: "c-6-1", Position: 5, HistoryVersion: 8}}
	return c
}

// said is a message of a person that was committed at the index, by the commit that made the version.
func said(name string, index, version int64) *v1beta1.ChatMessage {
	return &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1beta1.ChatMessageStatus{
		State: v1beta1.MessageCommitted, ChatUID: "u", Parent: "before", Index: &index, HistoryVersion: version,
	}}
}

// made is a generated message at the index, whose commit made the version.
func made(name string, index, version int64) *v1beta1.ChatMessage {
	return &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.ChatMessageSpec{
		Parent: "before", Index: &index,
		Generation: &v1beta1.MessageGeneration{ChatUID: "u", HistoryVersion: version - 1,
			Outcome: v1beta1.OutcomeCompleted},
	}}
}

func TestTheChatsWordOnAPlaceWins(t *testing.T) {
	type place struct {
		placed         bool
		parent         string
		index, version int64
	}
	open := &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "open"}}
	for name, c := range map[string]struct {
		message *v1beta1.ChatMessage
		want    place
	}{
		"a generated message":            {made("c-6-1", 4, 7), place{true, "before", 4, 7}},
		"an earlier message of a person": {said("p", 1, 2), place{true, "before", 1, 2}},
		"the turn's own, which says nothing yet": {&v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "q"}},
			place{true, "c-3-1", 3, 5}},
		"the turn's own, which says what was once": {said("q", 1, 2), place{true, "c-3-1", 3, 5}},
		"the results of a client":                  {said("r", 9, 9), place{true, "c-6-1", 5, 8}},
		"one that is nowhere":                      {open, place{}},
	} {
		n := Of(chat(), c.message)
		if got := (place{n.Placed, n.Parent, n.Index, n.Version}); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
	without := chat()
	without.Status.Turn = nil
	if commit := RecordedBy(without, ""); commit != nil {
		t.Errorf("a chat without a turn places %+v", commit)
	}
}

func TestWalkHoldsOnlyPossibleHistoryMessages(t *testing.T) {
	for name, c := range map[string]struct {
		message     *v1beta1.ChatMessage
		change      func(*v1beta1.ChatMessage)
		holds, left bool
	}{
		"a message of a person": {said("p", 1, 2), nil, true, false},
		"a reply":               {made("c-6-1", 4, 7), nil, true, false},
		"a note under the name of the turn's message": {said("q", 3, 5),
			func(m *v1beta1.ChatMessage) { m.Spec.Visibility = v1beta1.VisibleToUsers }, false, false},
		"half a reply": {made("c-6-1", 4, 7),
			func(m *v1beta1.ChatMessage) { m.Spec.Generation.Outcome = v1beta1.OutcomeInterrupted }, true, false},
		"a failure": {made("c-6-1", 4, 7),
			func(m *v1beta1.ChatMessage) { m.Spec.Generation.Outcome = v1beta1.OutcomeFailed }, false, false},
		"what a pod lost": {made("c-6-1", 4, 7),
			func(m *v1beta1.ChatMessage) { m.Spec.Generation.Outcome = v1beta1.OutcomeLost }, false, false},
		"a message that waits": {said("p", 1, 2),
			func(m *v1beta1.ChatMessage) { m.Status.State = v1beta1.MessageQueued }, false, false},
		"the turn's own before its status": {said("q", 1, 2),
			func(m *v1beta1.ChatMessage) { m.Status = v1beta1.ChatMessageStatus{} }, true, false},
		"a reply of another chat": {made("c-6-1", 4, 7),
			func(m *v1beta1.ChatMessage) { m.Spec.Generation.ChatUID = "v" }, false, false},
		"a message that another chat took": {said("p", 1, 2), func(m *v1beta1.ChatMessage) { m.Status.ChatUID = "v" },
			false, false},
		"one that is being deleted": {said("p", 1, 2),
			func(m *v1beta1.ChatMessage) { m.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, false, false},
		"a reply that was cut off":   {made("c-7-1", 6, 8), nil, false, true},
		"a message that was cut off": {said("p", 6, 8), nil, false, true},
		"a reply since then":         {made("c-9-1", 6, 10), nil, true, false},
		"the results, cut off once":  {said("r", 6, 8), nil, true, false},
		"what was cut off of another chat": {made("c-7-1", 6, 8),
			func(m *v1beta1.ChatMessage) { m.Spec.Generation.ChatUID = "v" }, false, false},
		"what was superseded and said so": {said("p", 6, 8),
			func(m *v1beta1.ChatMessage) { m.Status.State = v1beta1.MessageSuperseded }, false, false},
		"a message without any word of its": {said("p", 6, 8), func(m *v1beta1.ChatMessage) { m.Status.Index = nil }, true,
			false},
	} {
		if c.change != nil {
			c.change(c.message)
		}
		if got := MayHold(chat(), c.message); got != c.holds {
			t.Errorf("%s may be held: %t", name, got)
		}
		if got := len(Left(chat(), []v1beta1.ChatMessage{*c.message})) > 0; got != c.left {
			t.Errorf("%s has left: %t", name, got)
		}
	}
}
