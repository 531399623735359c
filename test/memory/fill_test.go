// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

const (
	// turnsAtRest of a chat at rest have two messages each.
	turnsAtRest = 10
	// writers fill the cluster at once.
	writers = 16
	// messageBytes is the length of each message's text.
	messageBytes = 4096
)

// textAtRest is the text of each message.
var textAtRest = strings.Repeat("0123456789abcde ", messageBytes/16)

// fill writes chats at rest, as a manager and its pods would have.
func fill(t testing.TB, namespace string, chats, turns int) {
	t.Helper()
	put(t, chats, func(i int) []client.Object { return chatAtRest(namespace, nameAtRest(i), turns) })
}

// nameAtRest names the object of that number.
func nameAtRest(i int) string { return fmt.Sprintf("support-%05d", i) }

// put writes what each of n yields past the API server.
func put(t testing.TB, n int, of func(i int) []client.Object) {
	t.Helper()
	eachOf(t, n, func(ctx context.Context, i int) error { return cluster.Put(ctx, of(i)...) })
}

// eachOf runs n, as many at once as there are writers, and waits for all.
func eachOf(t testing.TB, n int, run func(ctx context.Context, i int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return run(ctx, i) })
	}
	check.OK(t, group.Wait())
}

// chatAtRest is a chat with the messages of so many turns.
func chatAtRest(namespace, name string, turns int) []client.Object {
	chat := stored(chattest.In(namespace, chattest.Chat(name)), "kubectl")
	objects := []client.Object{chat}
	for range turns {
		question, answer := chattest.AnsweredTurn(chat, textAtRest, time.Now())
		objects = append(objects, stored(question, "kubectl"), stored(answer, "generator"))
	}
	chat.Status.Root = tree.Root(chat, false) // As the operator leaves it.
	return objects
}

// stored gives an object what the API server gives those that a manager of fields creates.
func stored[T client.Object](o T, manager string) T {
	now := metav1.Now()
	o.SetUID(uuid.NewUUID())
	o.SetGeneration(1)
	o.SetCreationTimestamp(now)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
		APIVersion: v1beta1.GroupVersion.String(), Time: &now, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{".":{},"f:chatRef":{".":{},"f:name":{}},"f:content":{},"f:role":{}}}`)}})
	return o
}
