// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// configured changes the namespace's default ChatModelConfig.
func configured(t *testing.T, ns string, change func(*v1beta1.ChatModelConfigSpec)) {
	t.Helper()
	var config v1beta1.ChatModelConfig
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "default"}, &config))
	before := config.DeepCopy()
	change(&config.Spec)
	check.OK(t, cluster.Client.Patch(t.Context(), &config, client.MergeFrom(before)))
}

// turnSummary is what a generation pod would create after the reply that it gave to this attempt.
func turnSummary(chat *v1beta1.Chat, text string) *v1beta1.ChatMessage {
	return chattest.TurnSummary(chattest.Answer(chat), text)
}

func hasSummary(t *testing.T, ns, name, text string, source v1beta1.TurnSummarySource) {
	t.Helper()
	eventually(t, fmt.Sprintf("chat %s says %q of its turn", name, text), func() bool {
		turn := chatIn(t, ns, name).Status.Turn
		return turn != nil && turn.Summary == text && turn.SummarySource == source
	})
}

func isGone(t *testing.T, m *v1beta1.ChatMessage) {
	t.Helper()
	eventually(t, "message "+m.Name+" is gone", func() bool {
		return apierrors.IsNotFound(cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(m), &v1beta1.ChatMessage{}))
	})
}

func TestTurnSummaryIsTakenAndItsMessageRemoved(t *testing.T) {
	ns := parallel(t)
	configured(t, ns, func(s *v1beta1.ChatModelConfigSpec) { s.TurnSummaries = &v1beta1.CaptionSettings{} })
	chat := started(t, ns, "c", "hello")
	hasSummary(t, ns, "c", "Still working", v1beta1.TurnSummaryFromState)
	answers(t, chat, chattest.Says("Fine."))
	hasSummary(t, ns, "c", "Finished", v1beta1.TurnSummaryFromState)
	said := turnSummary(chat, "Found the leak")
	create(t, said)
	hasSummary(t, ns, "c", "Found the leak", v1beta1.TurnSummaryFromModel)
	isGone(t, said)
	st := chatIn(t, ns, "c").Status
	check.Equal(t, "the status is", []any{2, 2, 15 + 4, v1beta1.ChatWaiting},
		[]any{st.History.Version, st.History.Length, st.Usage.TotalTokens, st.Phase})

	create(t, say(ns, "c", "second"))
	chat = assigned(t, ns, "c", 3, 1)
	hasSummary(t, ns, "c", "Still working", v1beta1.TurnSummaryFromState)
	t.Log("A summary that comes before the reply is committed is taken with it.")
	said = turnSummary(chat, "Fixed the leak")
	create(t, said)
	answers(t, chat, chattest.Says("Fine."))
	hasSummary(t, ns, "c", "Fixed the leak", v1beta1.TurnSummaryFromModel)
	isGone(t, said)
}

func TestLateTurnSummaryIsRemoved(t *testing.T) {
	ns := parallel(t)
	configured(t, ns, func(s *v1beta1.ChatModelConfigSpec) { s.TurnSummaries = &v1beta1.CaptionSettings{} })
	chat := started(t, ns, "c", "hello")
	answers(t, chat, chattest.Says("Fine."))
	hasSummary(t, ns, "c", "Finished", v1beta1.TurnSummaryFromState)
	create(t, say(ns, "c", "second"))
	second := assigned(t, ns, "c", 3, 1)
	late := turnSummary(chat, "Found the leak")
	create(t, late)
	isGone(t, late)
	hasSummary(t, ns, "c", "Still working", v1beta1.TurnSummaryFromState)
	answers(t, second, chattest.Says("Fine."))
	hasSummary(t, ns, "c", "Finished", v1beta1.TurnSummaryFromState)
	check.Equal(t, "the usage is", 30, chatIn(t, ns, "c").Status.Usage.TotalTokens)
}

func TestSummaryOfRemovedTurnIsNotReused(t *testing.T) {
	ns := parallel(t)
	configured(t, ns, func(s *v1beta1.ChatModelConfigSpec) { s.TurnSummaries = &v1beta1.CaptionSettings{} })
	answers(t, started(t, ns, "c", "hello"), chattest.Says("Fine."))
	hasSummary(t, ns, "c", "Finished", v1beta1.TurnSummaryFromState)
	second := say(ns, "c", "second")
	create(t, second)
	chat := assigned(t, ns, "c", 3, 1)
	t.Log("The second message goes before its answer counts; the pod knows nothing of that yet.")
	check.OK(t, cluster.Client.Delete(t.Context(), second))
	eventually(t, "the first turn is the last one", func() bool {
		st := chatIn(t, ns, "c").Status
		return st.Phase == v1beta1.ChatWaiting && st.History.Version == 4 && st.History.Length == 2
	})
	late := turnSummary(chat, "Fixed the leak")
	create(t, late)
	create(t, say(ns, "c", "third"))
	answers(t, assigned(t, ns, "c", 5, 1), chattest.Says("Fine."))
	hasSummary(t, ns, "c", "Finished", v1beta1.TurnSummaryFromState)
	isGone(t, late)
	check.Equal(t, "the late summary was counted", 30, chatIn(t, ns, "c").Status.Usage.TotalTokens)
}

func TestDisabledTurnSummaryIsRemovedFromIdleChat(t *testing.T) {
	ns := parallel(t)
	configured(t, ns, func(s *v1beta1.ChatModelConfigSpec) { s.TurnSummaries = &v1beta1.CaptionSettings{} })
	chat := started(t, ns, "c", "hello")
	configured(t, ns, func(s *v1beta1.ChatModelConfigSpec) { s.TurnSummaries = nil })
	answers(t, chat, chattest.Says("Fine."))
	hasSummary(t, ns, "c", "", "")
	said := turnSummary(chat, "Found the leak")
	create(t, said)
	isGone(t, said)
	hasSummary(t, ns, "c", "", "")
}

func TestSummariesThatAreNoneAreRefused(t *testing.T) {
	ns := parallel(t)
	chat := started(t, ns, "c", "hello")
	long := turnSummary(chat, "This is a summary of a turn that has far more than sixty characters")
	if err := cluster.Client.Create(t.Context(), long); !apierrors.IsInvalid(err) {
		t.Errorf("a long one: %v", err)
	}
	person := say(ns, "c", "c-2-summary")
	if err := cluster.Client.Create(t.Context(), person); !apierrors.IsInvalid(err) {
		t.Errorf("a person's message of such a name: %v", err)
	}
}

func TestAnotherTitleIsAskedForByToken(t *testing.T) {
	ns := parallel(t)
	configured(t, ns, func(s *v1beta1.ChatModelConfigSpec) { s.Titles = &v1beta1.CaptionSettings{} })
	answers(t, started(t, ns, "c", "hello"), chattest.Says("Fine."),
		chattest.Titles("Stuck pods", v1beta1.TitleFromModel))
	hasTitle(t, ns, "c", "Stuck pods", v1beta1.TitleFromModel)
	chat := chatIn(t, ns, "c")
	before := chat.DeepCopy()
	chat.Annotations = map[string]string{v1beta1.AnnotationTitle: "again"}
	check.OK(t, cluster.Client.Patch(t.Context(), chat, client.MergeFrom(before)))
	hasTitle(t, ns, "c", "Stuck pods", v1beta1.TitleOutdated)
	create(t, say(ns, "c", "second"))
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Says("Fine."), chattest.Titles("Full disks", v1beta1.TitleFromModel))
	hasTitle(t, ns, "c", "Full disks", v1beta1.TitleFromModel)
	if asked := chatIn(t, ns, "c").Status.Requests; len(asked) != 1 || asked[0].Token != "again" ||
		asked[0].Outcome != v1beta1.RequestDone {
		t.Errorf("the requests are %+v", asked)
	}
}
