// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
)

// ChatPage is a piece of the list of chats.
type ChatPage struct {
	// Chats of the page, by name.
	Chats []stream.Summary `json:"chats"`
	// Continue asks for the next page; empty for the last one.
	Continue string `json:"continue"`
}

// NewChat is a chat to create.
type NewChat struct {
	// Name of the chat; empty: the API server makes one up. A second request with a name is refused as AlreadyExists.
	Name string `json:"name,omitempty"`
	// Prefix is how a made-up name begins. Default: chat-.
	Prefix string `json:"prefix,omitempty"`
	// Labels of the chat.
	Labels map[string]string `json:"labels,omitempty"`
	// Spec of the chat. With a prompt it begins at once.
	Spec v1alpha1.ChatSpec `json:"spec"`
}

// Change is a change of a chat.
type Change struct {
	// ResourceVersion of the Chat that the change is of: if it was changed since, the change is refused as Conflict.
	// Empty: it is made whatever was changed.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Spec holds the fields of Chat.spec to change, as a JSON merge patch: nil takes one away.
	Spec map[string]any `json:"spec"`
}

// ListChats lists at most limit chats (0: 500, which is the most), from where the page before said to continue.
func (n Namespace) ListChats(ctx context.Context, limit int, next string) (*ChatPage, error) {
	query := url.Values{}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	if next != "" {
		query.Set("continue", next)
	}
	return call[ChatPage](ctx, n, http.MethodGet, query, nil, "chats")
}

// CreateChat creates a chat.
func (n Namespace) CreateChat(ctx context.Context, chat NewChat) (*v1alpha1.Chat, error) {
	return call[v1alpha1.Chat](ctx, n, http.MethodPost, nil, chat, "chats")
}

// GetChat reads a chat.
func (n Namespace) GetChat(ctx context.Context, chat string) (*v1alpha1.Chat, error) {
	return call[v1alpha1.Chat](ctx, n, http.MethodGet, nil, nil, "chats", chat)
}

// ChangeChat changes a chat, such as its title, or whether it is suspended or archived.
func (n Namespace) ChangeChat(ctx context.Context, chat string, change Change) (*v1alpha1.Chat, error) {
	return call[v1alpha1.Chat](ctx, n, http.MethodPatch, nil, change, "chats", chat)
}

// DeleteChat deletes a chat with its messages and sub-chats.
func (n Namespace) DeleteChat(ctx context.Context, chat string) error {
	return n.remove(ctx, "chats", chat)
}

// call makes a request about something in the namespace, which answers with a T.
func call[T any](ctx context.Context, n Namespace, method string, query url.Values, in any, words ...string) (*T,
	error) {
	path, err := n.path(words...)
	if err != nil {
		return nil, err
	}
	out := new(T)
	if err := n.client.do(ctx, method, path, query, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// remove deletes something in the namespace.
func (n Namespace) remove(ctx context.Context, words ...string) error {
	path, err := n.path(words...)
	if err != nil {
		return err
	}
	return n.client.do(ctx, http.MethodDelete, path, nil, nil, nil)
}
