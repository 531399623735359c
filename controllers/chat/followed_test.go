// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/fakeapi"
)

// lagging is a cache that has yet to learn of generated messages, if it lacks them.
type lagging struct {
	client.Client
	lacks bool
}

func (l *lagging) hides(name string) bool { return l.lacks && strings.HasPrefix(name, "c-") }

func (l *lagging) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, ok := o.(*v1beta1.ChatMessage); ok && l.hides(key.Name) {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "chatmessages"}, key.Name)
	}
	return l.Client.Get(ctx, key, o, opts...)
}

func (l *lagging) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := l.Client.List(ctx, list, opts...)
	if messages, ok := list.(*v1beta1.ChatMessageList); ok {
		messages.Items = slices.DeleteFunc(messages.Items, func(m v1beta1.ChatMessage) bool { return l.hides(m.Name) })
	}
	return err
}

// The status of message u is late: it does not say that the message is committed.
func TestStaleMessageStatusDoesNotRepeatTheReply(t *testing.T) {
	for name, lacks := range map[string]bool{"the cache has the reply": false, "the cache lacks the reply": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, next := range []func(){w.answer, func() { w.say("v") }, w.answer, func() {}} {
				if _, err := w.reconcile(); err != nil {
					t.Fatal(err)
				}
				next()
			}
			message := fakeapi.Read(t, w.Server, chattest.In("ns", chattest.User("c", "u")))
			message.Labels = map[string]string{"seen": "yes"}
			if err := w.Direct.Update(t.Context(), message); err != nil {
				t.Fatal(err)
			}
			w.cache.lacks = lacks
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			if st := w.chat().Status; st.Phase != v1beta1.ChatWaiting || st.History.Version != 4 {
				t.Errorf("the chat is %s, and its history at version %d", st.Phase, st.History.Version)
			}
		})
	}
}
