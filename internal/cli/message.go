// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

// checkChat says which chats there are, if this one is not.
func (o objects) checkChat(ctx context.Context, name string) error {
	_, err := o.chat(ctx, name)
	return err
}

// chat reads a chat, and says which chats there are if this one is not.
func (o objects) chat(ctx context.Context, name string) (*v1alpha1.Chat, error) {
	chat, err := o.chats().Get(ctx, name)
	if !apierrors.IsNotFound(err) {
		return chat, err
	}
	there := "there is none"
	if list, err := o.chats().List(ctx, metav1.ListOptions{Limit: 10}); err == nil &&
		len(list.Items) > 0 {
		names := make([]string, 0, len(list.Items))
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		there = "there is " + strings.Join(names, ", ")
	}
	return nil, missingError{fmt.Sprintf("namespace %s has no chat %s: %s", o.namespace, name, there)}
}

// settled waits until a message has had its last word. It returns an error if that is not an answer.
func (o objects) settled(ctx context.Context, name string, note func(string)) (v verdictOfMessage) {
	v.err = await(ctx, o.messages().Watch, name, func(m *v1alpha1.ChatMessage) (bool, error) {
		v.committed = m.Status.State == v1alpha1.MessageCommitted
		return verdict(m.Status.Conditions, note)
	})
	return v
}

// verdictOfMessage is the last word about a message.
type verdictOfMessage struct {
	// committed is true for a message that has had a turn.
	committed bool
	// err is why it was not answered.
	err error
}
