// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How many objects are asked for at once.
const (
	ListPage = 500
	// messagePage is less, since a message may have a MiB.
	MessagePage = 50
)

// EachPage reads a list page by page, of options.Limit objects each.
func EachPage[L any, P interface {
	*L
	GetContinue() string
}](ctx context.Context, options metav1.ListOptions, list func(context.Context, metav1.ListOptions) (*L, error),
	take func(page *L)) error {
	for {
		page, err := list(ctx, options)
		if err != nil {
			return err
		}
		take(page)
		if options.Continue = P(page).GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// MessagesOf selects the messages of a chat; those of all if it is empty.
func MessagesOf(chat string) metav1.ListOptions {
	options := metav1.ListOptions{Limit: MessagePage}
	if chat != "" {
		options.FieldSelector = "spec.chatRef.name=" + chat
	}
	return options
}
