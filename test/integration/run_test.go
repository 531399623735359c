// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// onlyChat waits for the chat of the namespace.
func onlyChat(t *testing.T, ns string) *v1beta1.Chat {
	t.Helper()
	var chats v1beta1.ChatList
	eventually(t, "there is a chat", func() bool {
		check.OK(t, cluster.Client.List(t.Context(), &chats, client.InNamespace(ns)))
		return len(chats.Items) == 1
	})
	return &chats.Items[0]
}

func TestRunPrintsTheAnswerAndRemovesItsChat(t *testing.T) {
	ns := parallel(t)
	shown, end := plugin(t, ns, "run", "--rm", "--system", "Be short.", "--tool", "read_*,list_*", "hello", "there")
	chat := onlyChat(t, ns)
	check.Equal(t, "the chat", []any{"hello there", "Be short.", []v1beta1.ToolPattern{"read_*", "list_*"}, "run-"},
		[]any{chat.Spec.Prompt, chat.Spec.SystemPrompt, chat.Spec.Tools.Allow, chat.GenerateName})
	answers(t, assigned(t, ns, chat.Name, 1, 1), chattest.Says("Fine."))
	shown.says(t, "Fine.")
	eventually(t, "the chat is gone", func() bool {
		return apierrors.IsNotFound(cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(chat), chat))
	})
	// What it waits for is on standard error.
	check.Equal(t, "the answer is last, and the exit code", []any{true, 0},
		[]any{strings.HasSuffix("\n"+shown.String(), "\nFine.\n"), end()})
}

func TestRunFailsAsTheTurnDoes(t *testing.T) {
	ns := parallel(t)
	file := filepath.Join(t.TempDir(), "chat.yaml")
	check.OK(t, os.WriteFile(file, []byte("apiVersion: parley.dev/v1beta1\nkind: Chat\nspec: {title: Mine}\n"), 0o600))
	shown, end := plugin(t, ns, "run", "-f", file, "hello")
	chat := onlyChat(t, ns)
	answers(t, assigned(t, ns, chat.Name, 1, 1), chattest.Fails(v1beta1.ErrorRequestRejected))
	shown.says(t, string(v1beta1.ErrorRequestRejected))
	check.Equal(t, "the title and the exit code", []any{"Mine", 1}, []any{chat.Spec.Title, end()})
}

func TestRunFailsWithAnAnswerThatWasCut(t *testing.T) {
	ns := parallel(t)
	shown, end := plugin(t, ns, "run", "--rm", "hello")
	chat := onlyChat(t, ns)
	answers(t, assigned(t, ns, chat.Name, 1, 1), chattest.Says("Only the beg"), func(m *v1beta1.ChatMessage) {
		m.Spec.Generation.ReplyOutcome = v1beta1.ReplyMaxTokensReached
	})
	shown.says(t, "Only the beg\n")
	shown.says(t, "the answer is not complete: The reply was cut")
	check.Equal(t, "exit code", 1, end())
}
