// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testmanager"
)

func TestOnlyTheManagerWritesStatus(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const body = `{"status":{"observedGeneration":1}}`
	var writes []write
	for _, kind := range []struct {
		does    string
		object  client.Object
		instead string
	}{
		{"writes the status of a chat", s.chat,
			"to stop a turn, annotate the Chat with parley.dev/interrupt=<any new value>"},
		{"writes the status of a message", s.asked, "chatmessages: edit the content of the message, or delete it"},
		{"writes the status of a result", s.replied, "chatmessages: edit the content of the message, or delete it"},
		{"writes the status of a model configuration", s.config, "chatmodelconfigs: change the spec, and the status follows"},
		{"writes the status of a quota", s.quota, "chatquotas: change the spec, and the status follows"},
		{"writes the status of an approval", s.approval, "toolapprovals: create another ToolApproval"},
	} {
		act := patchesStatus(kind.object, body)
		writes = append(writes, write{manager, kind.does, act, ""})
		for _, who := range []actor{administrator, root, boss, deployer, impostor} {
			writes = append(writes, write{who, kind.does, act, kind.instead})
		}
		for _, who := range []actor{owner, chatter, approver, viewer, governor, gateway, podA} {
			writes = append(writes, write{who, kind.does, act, noRight})
		}
	}
	try(t, append(writes,
		write{administrator, "replaces the status of a chat", replacesStatus(s.chat),
			"only Parley's manager writes the status of chats"},
		write{administrator, "applies the status of a chat", appliesStatus(s.chat),
			"only Parley's manager writes the status of chats"},
		write{administrator, "does to a chat what the refusal says",
			patches(s.chat, `{"metadata":{"annotations":{"`+v1beta1.AnnotationInterrupt+`":"1"}}}`), ""},
		write{administrator, "edits the message as the refusal says", patches(s.asked, `{"spec":{"content":"hello again"}}`),
			""},
	))
}

func TestAnAdministratorRepairsAStatusAsTheManager(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	_, err := kubectl(t.Context(), "", "--as="+manager.username(), "--as-group=system:masters", "--namespace="+ns, "patch",
		"chat", s.chat.Name,
		"--subresource=status", "--type=merge", "--patch", `{"status":{"lastReply":"Repaired."}}`)
	check.OK(t, err)
	if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(s.chat), s.chat); err != nil ||
		s.chat.Status.LastReply != "Repaired." {
		t.Errorf("the status is %+v, %v", s.chat.Status, err)
	}
}

func TestStatusInManifestIsIgnored(t *testing.T) {
	t.Parallel()
	chat := newChat(unique("chat"))
	chat.Status = v1beta1.ChatStatus{Phase: v1beta1.ChatWaiting, LastReply: "Forged."}
	mustCreate(t, chatter, chat)
	if chat.Status.LastReply != "" || chat.Status.Phase != "" {
		t.Errorf("created with the status %+v", chat.Status)
	}
	check.OK(t, patches(chat, `{"status":{"lastReply":"Forged."}}`)(t.Context(), as(t, chatter)))
	if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(chat), chat); err != nil ||
		chat.Status.LastReply != "" {
		t.Errorf("patched to the status %+v, %v", chat.Status, err)
	}
}

func patchesStatus(o client.Object, body string) action {
	return func(ctx context.Context, c client.Client) error {
		return c.Status().Patch(ctx, o.DeepCopyObject().(client.Object),
			client.RawPatch("application/merge-patch+json", []byte(body)))
	}
}

func replacesStatus(chat *v1beta1.Chat) action {
	return func(ctx context.Context, c client.Client) error {
		var now v1beta1.Chat
		if err := c.Get(ctx, client.ObjectKeyFromObject(chat), &now); err != nil {
			return err
		}
		now.Status.LastReply = "Forged."
		return c.Status().Update(ctx, &now)
	}
}

func appliesStatus(chat *v1beta1.Chat) action {
	return func(ctx context.Context, c client.Client) error {
		body := `{"apiVersion":"parley.dev/v1beta1","kind":"Chat","metadata":{"name":"` + chat.Name +
			`"},"status":{"lastReply":"Forged."}}`
		return c.Status().Patch(ctx, chat.DeepCopy(), client.RawPatch("application/apply-patch+yaml", []byte(body)),
			client.FieldOwner("tester"), client.ForceOwnership)
	}
}

func TestResultWithQuestionShowsOutcomeAsState(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	asks := result(s.chat, chattest.Asks("call_1"))
	asks.Spec.Generation.Questions[0].ToolState = "only for the tool"
	mustCreate(t, podA, asks)
	listed, err := kubectl(t.Context(), "", "get", "chatmessage", asks.Name, "-n", ns, "--no-headers")
	if err != nil || !strings.Contains(listed, "Completed") || strings.Contains(listed, "only for the tool") {
		t.Errorf("kubectl lists it as %s, %v", listed, err)
	}
}

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
		func() bool { return chat.Status.Phase == v1beta1.ChatWaiting && chat.Status.History.Length == 2 })

	prompt := chattest.In(team, chattest.User("c", "c-prompt"))
	await(t, "the message says so", prompt, func() bool {
		return len(prompt.Status.Conditions) > 0 && v1beta1.ReasonOf(&prompt.Status.Conditions[0]) == v1beta1.ReasonAnswered
	})
	if !canStamp {
		t.Log("the authors are not compared: the cluster has no stamp")
		return
	}
	if stamp(t, chat) != chatter.username() || stamp(t, prompt) != chatter.username() {
		t.Errorf("the chat was created by %q, its prompt's message by %q", stamp(t, chat), stamp(t, prompt))
	}
}

// startManager runs the manager's controllers as its own account until the test ends, or until stop is called. They
// remove generation pods that they have no work for, which other tests need. A test that calls it is not parallel.
func startManager(t testing.TB, change ...func(*testmanager.Options)) (stop func()) {
	t.Helper()
	token, err := manager.token(t.Context())
	check.OK(t, err)
	cfg := rest.AnonymousClientConfig(cluster.Config)
	cfg.BearerToken = token
	end, err := testmanager.Start(context.WithoutCancel(t.Context()), cfg, append(change, func(o *testmanager.Options) {
		o.Controllers.GatewayNamespace, o.Controllers.Workers = "parley-system", 2
	})...)
	check.OK(t, err)
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
