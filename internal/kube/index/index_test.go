// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func TestTheCacheHoldsNoText(t *testing.T) {
	message, err := StripMessage(&v1beta1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Name: "m",
			Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "secret words"}},
		Spec: v1beta1.ChatMessageSpec{
			Content:    "secret words",
			Parts:      []v1beta1.MessagePart{{Type: v1beta1.PartText, Text: new("secret words")}},
			Generation: &v1beta1.MessageGeneration{PendingCalls: 1},
		},
	})
	check.OK(t, err)
	chat, err := StripChat(&v1beta1.Chat{
		Spec:   v1beta1.ChatSpec{Prompt: "secret words", SystemPrompt: "secret words"},
		Status: v1beta1.ChatStatus{History: v1beta1.HistoryStatus{Version: 1}},
	})
	check.OK(t, err)
	raw, err := json.Marshal([]any{message, chat})
	check.OK(t, err)
	if strings.Contains(string(raw), "secret words") || !strings.Contains(string(raw), `"pendingCalls":1`) {
		t.Errorf("the cache holds %s", raw)
	}
}

func TestAPromptStaysUntilItIsAMessage(t *testing.T) {
	for name, c := range map[string]struct {
		prompt         string
		version        int64
		author, stored string
	}{
		"it has yet to begin":         {"hello", 0, "anna", "hello"},
		"it has begun":                {"hello", 1, "", ""},
		"it begins without a prompt":  {"", 0, "", ""},
		"it began without any prompt": {"", 1, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			stripped, err := StripChat(&v1beta1.Chat{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta1.AnnotationCreatedBy: "anna"}},
				Spec:       v1beta1.ChatSpec{Prompt: c.prompt},
				Status:     v1beta1.ChatStatus{History: v1beta1.HistoryStatus{Version: c.version}},
			})
			chat := stripped.(*v1beta1.Chat)
			if err != nil || chat.Spec.Prompt != c.stored || chat.Annotations[v1beta1.AnnotationCreatedBy] != c.author {
				t.Errorf("got %+v, %v", chat, err)
			}
		})
	}
}

func TestMessagesAreFoundByWhatTheyNeed(t *testing.T) {
	message := func(change func(*v1beta1.ChatMessage)) *v1beta1.ChatMessage {
		m := &v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleUser,
			ChatRef: v1beta1.ChatReference{Name: "c"}}}
		change(m)
		return m
	}
	generated := func(outcome v1beta1.GenerationOutcome) func(*v1beta1.ChatMessage) {
		return func(m *v1beta1.ChatMessage) {
			m.Spec.Role, m.Spec.Parent = v1beta1.RoleAssistant, "before"
			m.Spec.Generation = &v1beta1.MessageGeneration{Outcome: outcome}
		}
	}
	following := func(m *v1beta1.ChatMessage) {
		generated(v1beta1.OutcomeCompleted)(m)
		m.Spec.Parent = "b"
		m.Spec.Follows = []v1beta1.CommittedMessage{
			{Message: "a", Parent: "before", PreviousTurn: &v1beta1.TurnOutcome{Message: "earlier"}},
			{Message: "b", Parent: "a"}}
	}
	answered := func(m *v1beta1.ChatMessage) {
		m.Status.Parent = "before"
		m.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue}}
	}
	for name, c := range map[string]struct {
		message                              *v1beta1.ChatMessage
		unsettled, reports, parents, ofAChat []string
	}{
		"a new message":           {message(func(*v1beta1.ChatMessage) {}), []string{"c", AnyChat}, nil, nil, []string{"c"}},
		"an answered one":         {message(answered), nil, nil, []string{"before"}, []string{"c"}},
		"a reply to two messages": {message(following), nil, nil, []string{"b", "a"}, []string{"c"}},
		"a step":                  {message(generated(v1beta1.OutcomeCompleted)), nil, nil, []string{"before"}, []string{"c"}},
		"a report of a loss": {message(generated(v1beta1.OutcomeLost)), nil, []string{"c"}, []string{"before"},
			[]string{"c"}},
	} {
		t.Run(name, func(t *testing.T) {
			for what, pair := range map[string][2][]string{
				"unsettled": {unsettledByChat(c.message), c.unsettled}, "reports": {reportsByChat(c.message), c.reports},
				"parents": {FollowedBy(c.message), c.parents}, "of a chat": {messagesByChat(c.message), c.ofAChat},
			} {
				if !slices.Equal(pair[0], pair[1]) {
					t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
				}
			}
		})
	}
}
