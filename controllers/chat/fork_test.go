// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
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

func TestForkWithoutItsSourceExpires(t *testing.T) {
	retention := &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(600))}
	class := chattest.In("ns", chattest.Class("coder", func(s *v1beta1.ChatClassSpec) {
		s.Restrictions = &v1beta1.ChatRestrictions{Retention: retention}
	}))
	for name, c := range map[string]struct {
		change func(*v1beta1.ChatSpec)
		kept   bool
	}{
		"of the chat":            {func(s *v1beta1.ChatSpec) { s.Retention = retention }, false},
		"of its class":           {func(s *v1beta1.ChatSpec) { s.ChatClassName = "coder" }, false},
		"of the chat with words": {func(s *v1beta1.ChatSpec) { s.Retention, s.Prompt = retention, "And?" }, false},
		"of an archived chat":    {func(s *v1beta1.ChatSpec) { s.Retention, s.Archived = retention, true }, false},
		"of a suspended chat":    {func(s *v1beta1.ChatSpec) { s.Retention, s.Suspend = retention, true }, true},
		"of a class that is not there": {
			func(s *v1beta1.ChatSpec) { s.Retention, s.ChatClassName = retention, "absent" }, true},
		"none": {func(*v1beta1.ChatSpec) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			fork := chattest.In("ns", chattest.Chat("f", chattest.UID("fork-uid"), func(o *v1beta1.Chat) {
				o.Generation, o.CreationTimestamp = 1, metav1.NewTime(now)
				o.Spec.Fork = &v1beta1.ForkSource{Chat: "absent", Message: "m"}
				c.change(&o.Spec)
			}))
			check.OK(t, w.Direct.Create(t.Context(), class.DeepCopy()))
			check.OK(t, w.Direct.Create(t.Context(), fork))
			at := func(by time.Duration) (there bool) {
				t.Helper()
				w.later(by)
				for range 3 {
					_, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(fork)})
					check.OK(t, err)
				}
				return isThere(t, w, fork)
			}
			if !at(0) || !at(plan.ManifestPatience) || fork.Status.IdleSince == nil || fork.Status.ExpiresAt == nil != c.kept {
				t.Fatalf("idle since %v, expires at %v", fork.Status.IdleSince, fork.Status.ExpiresAt)
			}
			if !at(9*time.Minute) || at(11*time.Minute) != c.kept {
				t.Errorf("the fork is there: %t", isThere(t, w, fork))
			}
		})
	}
}

func TestForkRestsAnewWithItsHistory(t *testing.T) {
	w := newWorld(t)
	_, err := w.reconcile()
	check.OK(t, err)
	fork := chattest.In("ns", chattest.Chat("f", chattest.UID("fork-uid"), func(c *v1beta1.Chat) {
		c.Generation, c.CreationTimestamp = 1, metav1.NewTime(now)
		c.Spec.Fork = &v1beta1.ForkSource{Chat: "c", Message: chattest.Answer(w.chat(), chattest.Says("Hi.")).Name}
		c.Spec.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(600))}
	}))
	check.OK(t, w.Direct.Create(t.Context(), fork))
	passes := func() {
		for range 3 {
			_, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(fork)})
			check.OK(t, err)
		}
		check.OK(t, w.Direct.Get(t.Context(), client.ObjectKeyFromObject(fork), fork))
	}
	w.later(plan.ManifestPatience)
	if passes(); fork.Status.IdleSince == nil {
		t.Fatal("a fork of a message that is not in the history does not rest")
	}
	w.later(9 * time.Minute)
	w.answer()
	_, err = w.reconcile()
	check.OK(t, err)
	passes()
	if since := fork.Status.IdleSince; fork.Status.History.Length != 2 || since == nil || !since.Equal(
		new(metav1.NewTime(now.Add(9*time.Minute)))) {
		t.Errorf("with %d messages, it rests since %v", fork.Status.History.Length, since)
	}
}

func isThere(t *testing.T, w *world, chat *v1beta1.Chat) bool {
	t.Helper()
	err := w.Direct.Get(t.Context(), client.ObjectKeyFromObject(chat), chat)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

func TestForkLeavesOutFilesThatAreGone(t *testing.T) {
	source, fork := chattest.Chat("c", chattest.UID("c-uid")), chattest.Chat("f", chattest.UID("f-uid"))
	m := chattest.User("c", "m")
	m.Spec.Parts = []v1beta1.MessagePart{{File: &v1beta1.MessageFile{MediaType: "image/png", Stored: &v1beta1.StoredFile{
		SHA256: strings.Repeat("a", 64), Size: 1}}}}
	f := &forker{files: newStore(t)}
	check.OK(t, f.copyFiles(t.Context(), source, fork, []*v1beta1.ChatMessage{m}))
}

func TestForkReportsFilesThatCannotBeCopied(t *testing.T) {
	w := newWorld(t)
	m := w.msg("u")
	m.Spec.Content, m.Spec.Parts = "", []v1beta1.MessagePart{{Type: v1beta1.PartFile, File: &v1beta1.MessageFile{
		MediaType: "image/png", Stored: &v1beta1.StoredFile{SHA256: strings.Repeat("a", 64), Size: 1}}}}
	check.OK(t, w.Direct.Update(t.Context(), m))
	w.rec() // The history has message u.
	bucket := memblob.OpenBucket(nil)
	check.OK(t, bucket.Close())
	w.forker.files = archive.New(bucket, w.options.Now)
	fork := chattest.In("ns", chattest.Chat("f", chattest.UID("fork-uid"), func(c *v1beta1.Chat) {
		c.Generation, c.Spec.Fork = 1, &v1beta1.ForkSource{Chat: "c", Message: "u"}
	}))
	check.OK(t, w.Direct.Create(t.Context(), fork))
	for range 2 { // It reports first that it copies the history.
		_, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(fork)})
		check.OK(t, err)
	}
	ready := meta.FindStatusCondition(fakeapi.Read(t, w.Server, fork).Status.Conditions, v1beta1.ConditionReady)
	if ready == nil || !strings.Contains(ready.Message, "The files of chat c cannot be copied: ") {
		t.Errorf("Ready is %+v", ready)
	}
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
