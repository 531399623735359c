// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

func TestChatIsSettledOnlyWithoutWorkInProgress(t *testing.T) {
	for name, c := range map[string]struct {
		phase   v1beta1.ChatPhase
		reason  v1beta1.ConditionReason
		settled bool
	}{
		"never looked at":       {"", "", false},
		"beginning":             {v1beta1.ChatWaiting, v1beta1.ReasonStarting, false},
		"generating":            {v1beta1.ChatRunning, v1beta1.ReasonGenerating, false},
		"without capacity":      {v1beta1.ChatRunning, v1beta1.ReasonWaitingForCapacity, false},
		"over budget":           {v1beta1.ChatRunning, v1beta1.ConditionReason(v1beta1.ErrorBudgetReached), true},
		"being interrupted":     {v1beta1.ChatInterrupting, v1beta1.ReasonInterrupting, false},
		"waiting for people":    {v1beta1.ChatRequiresAction, v1beta1.ReasonRequiresAction, false},
		"done":                  {v1beta1.ChatWaiting, v1beta1.ReasonAnswered, true},
		"without a message":     {v1beta1.ChatWaiting, v1beta1.ReasonAwaitingFirstMessage, true},
		"without a model":       {v1beta1.ChatWaiting, v1beta1.ConditionReason(v1beta1.ErrorModelConfigNotFound), true},
		"failed":                {v1beta1.ChatError, v1beta1.ConditionReason(v1beta1.ErrorContextTooLong), true},
		"archived":              {v1beta1.ChatWaiting, v1beta1.ReasonArchived, true},
		"to be archived, later": {v1beta1.ChatWaiting, v1beta1.ReasonArchiving, true},
	} {
		t.Run(name, func(t *testing.T) {
			chat := &v1beta1.Chat{Status: v1beta1.ChatStatus{Phase: c.phase}}
			if c.reason != "" {
				status := metav1.ConditionUnknown
				if c.reason == v1beta1.ConditionReason(v1beta1.ErrorBudgetReached) {
					status = metav1.ConditionFalse
				}
				chat.Status.Conditions = []metav1.Condition{
					{Type: v1beta1.ConditionReady, Status: status, Reason: string(c.reason)}}
			}
			if Settled(chat) != c.settled {
				t.Errorf("settled is %v", !c.settled)
			}
		})
	}
}

func TestOnlyDescendantsAreBelowAChat(t *testing.T) {
	_, chats := tree(nil)
	lookup := func(name string) (*v1beta1.Chat, error) { return chats[name], nil }
	for _, c := range []struct {
		chat, above string
		below       bool
	}{
		{"a", "root", true}, {"deep", "a", true}, {"deep", "root", true}, {"root", "a", false}, {"a", "a", false},
		{"a", "b", false},
		{"stranger", "root", false}, {"lost", "root", false}, {"x", "root", false}, {"x", "x", false},
	} {
		if below, err := Below(chats[c.chat], c.above, lookup); err != nil || below != c.below {
			t.Errorf("%s below %s: %v, %v", c.chat, c.above, below, err)
		}
	}
	broken := errors.New("no answer")
	if _, err := Below(chats["deep"], "root", func(string) (*v1beta1.Chat, error) { return nil, broken }); !errors.Is(err,
		broken) {
		t.Errorf("got %v", err)
	}
}
