// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/testmanager"
)

// TestAWholeTurnPassesTheRolesAndPolicies runs the real manager with the rights of its own account. The pod's part is
// played with a token of the pod that the manager has created, by the Role that it has given it.
func TestAWholeTurnPassesTheRolesAndPolicies(t *testing.T) {
	const team = "turns"
	mustCreate(t, administrator, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}})
	mustCreate(t, administrator, inNamespace(chatter.name, team, "parley-chat-user"))
	mustCreate(t, administrator, chattest.In(team, chattest.Config("default", chattest.Default)))
	chat := chattest.In(team, chattest.Chat("c", chattest.Prompt("hello")))
	mustCreate(t, chatter, chat)
	startManager(t)

	await(t, "the chat is given to a pod", chat, func() bool { return chat.Status.Generation != nil })
	pod := actor{name: "the pod", namespace: team, account: podspec.ServiceAccount, pod: chat.Status.Generation.Pod}
	mustCreate(t, pod, result(chat))
	await(t, "the turn has ended", chat,
		func() bool { return chat.Status.Phase == v1alpha1.ChatWaiting && chat.Status.History.Length == 2 })

	prompt := chattest.In(team, chattest.User("c", "c-prompt"))
	await(t, "the message says so", prompt, func() bool {
		return len(prompt.Status.Conditions) > 0 && v1alpha1.ReasonOf(&prompt.Status.Conditions[0]) == v1alpha1.ReasonAnswered
	})
	if stamp(t, chat) != chatter.username() || stamp(t, prompt) != chatter.username() {
		t.Errorf("the chat was created by %q, its prompt's message by %q", stamp(t, chat), stamp(t, prompt))
	}
}

// startManager runs the manager's controllers as its own account until the test ends, or until stop is called. They
// remove generation pods that they have no work for, which other tests need. A test that calls it is not parallel.
func startManager(t testing.TB) (stop func()) {
	t.Helper()
	token, err := manager.token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg := rest.AnonymousClientConfig(cluster.Config)
	cfg.BearerToken = token
	end, err := testmanager.Start(context.WithoutCancel(t.Context()), cfg, func(o *testmanager.Options) {
		o.Controllers.GatewayNamespace, o.Controllers.Workers = "parley-system", 2
	})
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := end(); err != nil {
			t.Errorf("the manager ended: %v", err)
		}
		if err := startPods(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// await reads the object until it is as awaited.
func await(t testing.TB, what string, o client.Object, condition func() bool) {
	t.Helper()
	err := until(t.Context(), what, func(ctx context.Context) bool {
		return cluster.Client.Get(ctx, client.ObjectKeyFromObject(o), o) == nil && condition()
	})
	if err != nil {
		t.Fatalf("%v: %+v", err, o)
	}
}
