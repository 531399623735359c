// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
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
			patches(s.chat, `{"metadata":{"annotations":{"`+v1alpha1.AnnotationInterrupt+`":"1"}}}`), ""},
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
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(s.chat), s.chat); err != nil ||
		s.chat.Status.LastReply != "Repaired." {
		t.Errorf("the status is %+v, %v", s.chat.Status, err)
	}
}

func TestStatusInManifestIsIgnored(t *testing.T) {
	t.Parallel()
	chat := newChat(unique("chat"))
	chat.Status = v1alpha1.ChatStatus{Phase: v1alpha1.ChatWaiting, LastReply: "Forged."}
	mustCreate(t, chatter, chat)
	if chat.Status.LastReply != "" || chat.Status.Phase != "" {
		t.Errorf("created with the status %+v", chat.Status)
	}
	if err := patches(chat, `{"status":{"lastReply":"Forged."}}`)(t.Context(), as(t, chatter)); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(chat), chat); err != nil ||
		chat.Status.LastReply != "" {
		t.Errorf("patched to the status %+v, %v", chat.Status, err)
	}
}

func patchesStatus(o client.Object, body string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Status().Patch(ctx, o.DeepCopyObject().(client.Object),
			client.RawPatch("application/merge-patch+json", []byte(body)))
	}
}

func replacesStatus(chat *v1alpha1.Chat) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		var now v1alpha1.Chat
		if err := c.Get(ctx, client.ObjectKeyFromObject(chat), &now); err != nil {
			return err
		}
		now.Status.LastReply = "Forged."
		return c.Status().Update(ctx, &now)
	}
}

func appliesStatus(chat *v1alpha1.Chat) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		body := `{"apiVersion":"parley.dev/v1alpha1","kind":"Chat","metadata":{"name":"` + chat.Name +
			`"},"status":{"lastReply":"Forged."}}`
		return c.Status().Patch(ctx, chat.DeepCopy(), client.RawPatch("application/apply-patch+yaml", []byte(body)),
			client.FieldOwner("tester"), client.ForceOwnership)
	}
}
