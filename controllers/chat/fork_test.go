// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

func TestArchivedForkCopiesNothing(t *testing.T) {
	w := newWorld(t)
	_, err := w.reconcile()
	check.OK(t, err) // The history has message u.
	fork := chattest.In("ns", chattest.Chat("f", chattest.UID("fork-uid"), func(c *v1beta1.Chat) {
		c.Generation, c.Spec.Archived, c.Spec.Fork = 1, true, &v1beta1.ForkSource{Chat: "c", Message: "u"}
	}))
	check.OK(t, w.Direct.Create(t.Context(), fork))
	before := len(w.Writes())
	for range 3 {
		result, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(fork)})
		check.OK(t, err)
		check.Equal(t, "when it is looked at again", ctrl.Result{}, result)
	}
	check.Equal(t, "writes", []string{"update status of chat"}, w.Writes()[before:])
}

func TestStuckForkSendsNoMessageTwice(t *testing.T) {
	w := newWorld(t)
	_, err := w.reconcile()
	check.OK(t, err)
	reply := chattest.Answer(w.chat(), chattest.Says("Hi.")).Name
	w.answer()
	_, err = w.reconcile()
	check.OK(t, err) // The history has message u and the reply.
	fork := chattest.In("ns", chattest.Chat("f", chattest.UID("fork-uid"), func(c *v1beta1.Chat) {
		c.Generation, c.Spec.Fork, c.Spec.Prompt = 1, &v1beta1.ForkSource{Chat: "c", Message: reply}, "And?"
	}))
	taken := chattest.In("ns", chattest.User("c", plan.PromptMessage(fork).Name))
	check.OK(t, w.Direct.Create(t.Context(), fork))
	check.OK(t, w.Direct.Create(t.Context(), taken))
	var creates []int
	for range 4 { // It reports first that it copies the history.
		_, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(fork)})
		check.OK(t, err)
		n := 0
		for _, write := range w.Writes() {
			if write == "create chatmessage" {
				n++
			}
		}
		creates = append(creates, n)
	}
	check.Equal(t, "messages that were sent, the prompt each time", []int{0, 3, 4, 5}, creates)
}

func TestForkLeavesOutFilesThatAreGone(t *testing.T) {
	source, fork := chattest.Chat("c", chattest.UID("c-uid")), chattest.Chat("f", chattest.UID("f-uid"))
	m := chattest.User("c", "m")
	m.Spec.Parts = []v1beta1.MessagePart{{File: &v1beta1.MessageFile{MediaType: "image/png", Stored: &v1beta1.StoredFile{
		SHA256: strings.Repeat("a", 64), Size: 1}}}}
	f := &forker{files: newStore(t)}
	check.OK(t, f.copyFiles(t.Context(), source, fork, []*v1beta1.ChatMessage{m}))
}

// withoutWorkspaces is a cache that does not show workspaces yet.
type withoutWorkspaces struct{ client.Client }

func (c withoutWorkspaces) Get(ctx context.Context, key client.ObjectKey, o client.Object,
	opts ...client.GetOption) error {
	if _, ok := o.(*v1beta1.Workspace); ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "workspaces"}, key.Name)
	}
	return c.Client.Get(ctx, key, o, opts...)
}

func TestCopyThatCacheLacksIsCanceled(t *testing.T) {
	w := newWorld(t)
	_, err := w.reconcile()
	check.OK(t, err) // The history has message u.
	fork := chattest.In("ns", chattest.Chat("f", chattest.UID("fork-uid"), func(c *v1beta1.Chat) {
		c.Generation, c.Spec.Fork = 1, &v1beta1.ForkSource{Chat: "c", Message: "u"}
	}))
	workspace := &v1beta1.Workspace{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "f",
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(fork, v1beta1.GroupVersion.WithKind("Chat"))}},
		Spec: v1beta1.WorkspaceSpec{CopyFrom: "source"}}
	check.OK(t, w.Direct.Create(t.Context(), fork))
	check.OK(t, w.Direct.Create(t.Context(), workspace))
	w.cache.Client = withoutWorkspaces{w.cache.Client}
	for range 2 { // It reports first that it copies the history.
		_, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(fork)})
		check.OK(t, err)
	}
	check.Equal(t, "files to copy", "", fakeapi.Read(t, w.Server, workspace).Spec.CopyFrom)
}
