// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How many objects are asked for at once.
const (
	listPage = 500
	// messagePage is less, since a message may have a MiB.
	messagePage = 50
)

// eachPage reads a list page by page, of options.Limit objects each.
func eachPage[L any, P interface {
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

// ofChat selects the messages of a chat; those of all if it is empty.
func ofChat(chat string) metav1.ListOptions {
	options := metav1.ListOptions{Limit: messagePage}
	if chat != "" {
		options.FieldSelector = "spec.chatRef.name=" + chat
	}
	return options
}
