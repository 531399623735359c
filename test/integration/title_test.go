// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// paid says what the call for the title that comes with the step used.
func paid(call *v1beta1.CallAccount) chattest.Reply {
	return func(m *v1beta1.ChatMessage) { m.Spec.Generation.TitleCall = call }
}

func hasTitle(t *testing.T, ns, name, title string, source v1beta1.TitleSource) {
	t.Helper()
	eventually(t, "chat "+name+" has the title "+title, func() bool {
		st := chatIn(t, ns, name).Status
		return st.Title == title && st.TitleSource == source
	})
}

// retitle gives the chat a title, or takes it back.
func retitle(t *testing.T, ns, name, title string) {
	t.Helper()
	chat := chatIn(t, ns, name)
	before := chat.DeepCopy()
	chat.Spec.Title = title
	if err := cluster.Client.Patch(t.Context(), chat, client.MergeFrom(before)); err != nil {
		t.Fatalf("giving chat %s the title %q: %v", name, title, err)
	}
}

func TestATitleHas80CharactersWhateverTheirBytes(t *testing.T) {
	t.Parallel()
	ns, title := namespace(t), strings.Repeat("ß", v1beta1.MaxTitleRunes)
	chat := newChat(ns, "c", "hello")
	chat.Spec.Title = title
	create(t, chat)
	hasTitle(t, ns, "c", title, v1beta1.TitleFromSpec)
}

func TestUserTitleOverridesGeneratedTitle(t *testing.T) {
	ns := parallel(t)
	answers(t, started(t, ns, "c", "Why would a pod be stuck?"), chattest.Says("Fine."),
		chattest.Titles("Why would a pod be stuck?", v1beta1.TitleFromFirstWords))
	hasTitle(t, ns, "c", "Why would a pod be stuck?", v1beta1.TitleFromFirstWords)

	create(t, say(ns, "c", "second"))
	call := &v1beta1.CallAccount{Model: &v1beta1.ModelIdentity{Config: "cheap", Name: "m"},
		Usage: v1beta1.TokenUsage{InputTokens: 4, TotalTokens: 4}}
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Says("Fine."), chattest.Titles("Stuck pods", v1beta1.TitleFromModel),
		paid(call))
	hasTitle(t, ns, "c", "Stuck pods", v1beta1.TitleFromModel)
	st := chatIn(t, ns, "c").Status
	check.Equal(t, "the title came at version", []any{4, 15 + 15 + 4}, []any{st.History.Version, st.Usage.TotalTokens})

	retitle(t, ns, "c", "Mine")
	hasTitle(t, ns, "c", "Mine", v1beta1.TitleFromSpec)
	retitle(t, ns, "c", "")
	hasTitle(t, ns, "c", "", "")
}

func TestChatIsCalledByItsFirstWords(t *testing.T) {
	ns := parallel(t)
	started(t, ns, "c", "Why would a pod be stuck in ContainerCreating?")
	hasTitle(t, ns, "c", "Why would a pod be stuck…", v1beta1.TitleFromFirstWords)
	edit(t, ns, "c-prompt", "How do I\u202e debug it?")
	assigned(t, ns, "c", 2, 1)
	hasTitle(t, ns, "c", "How do I debug it?", v1beta1.TitleFromFirstWords)

	create(t, newChat(ns, "bare", "")) // The cache keeps nothing of what its first message says.
	create(t, say(ns, "bare", "q"))
	assigned(t, ns, "bare", 1, 1)
	hasTitle(t, ns, "bare", "hello", v1beta1.TitleFromFirstWords)
}

func TestGivenTitleIsSetBeforeFirstMessage(t *testing.T) {
	ns := parallel(t)
	chat := newChat(ns, "c", "")
	chat.Spec.Title = "Mine"
	create(t, chat)
	hasTitle(t, ns, "c", "Mine", v1beta1.TitleFromSpec)
}

func TestTitlesThatAreNoneAreRefused(t *testing.T) {
	ns := parallel(t)
	for name, title := range map[string]string{
		"two lines": "one\ntwo", "control characters": "a\x1b[31m", "spaces": "  ",
		"more than 80 characters": strings.Repeat("x", 81),
	} {
		chat := newChat(ns, "c", "")
		chat.Spec.Title = title
		if err := cluster.Client.Create(t.Context(), chat); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMissingTitleModelConfigIsReported(t *testing.T) {
	ns := parallel(t)
	config := &v1beta1.ChatModelConfig{}
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "default"}, config))
	before := config.DeepCopy()
	config.Spec.Titles = &v1beta1.CaptionSettings{ModelConfigRef: &v1beta1.ModelConfigReference{Name: "nowhere"}}
	check.OK(t, cluster.Client.Patch(t.Context(), config, client.MergeFrom(before)))
	eventually(t, "the configuration says so", func() bool {
		check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(config), config))
		return meta.IsStatusConditionTrue(config.Status.Conditions, v1beta1.ConditionReferencesUnresolved)
	})
}
