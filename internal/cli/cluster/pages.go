// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// How many objects are asked for at once.
const (
	listPage = 500
	// messagePage is less, since a message may have a MiB.
	MessagePage = 50
)

// Each reads a list page by page, of options.Limit objects each, and takes each object.
func Each[T, L any, P interface {
	*L
	runtime.Object
	GetContinue() string
}](ctx context.Context, options metav1.ListOptions, list func(context.Context, metav1.ListOptions) (*L, error),
	take func(*T)) error {
	for {
		page, err := list(ctx, options)
		if err != nil {
			return err
		}
		if err := meta.EachListItem(P(page), func(o runtime.Object) error {
			if item, ok := any(o).(*T); ok {
				take(item)
			}
			return nil
		}); err != nil {
			return fmt.Errorf("reading a list: %w", err)
		}
		if options.Continue = P(page).GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// InPages selects all objects of a list.
func InPages() metav1.ListOptions { return metav1.ListOptions{Limit: listPage} }

// MessagesOf selects the messages of a chat; those of all if it is empty.
func MessagesOf(chat string) metav1.ListOptions {
	options := metav1.ListOptions{Limit: MessagePage}
	if chat != "" {
		options.FieldSelector = "spec.chatRef.name=" + chat
	}
	return options
}
