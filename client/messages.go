// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"

	"parley.dev/parley/api/v1alpha1"
)

// NewMessage is something to say to a chat. Its fields are those of ChatMessage.spec.
type NewMessage struct {
	// Name of the message; empty: the API server makes one up. A second request with a name is refused as AlreadyExists.
	Name string `json:"name,omitempty"`
	// Content is a text, and Parts in its place are texts and files.
	Content string                 `json:"content,omitempty"`
	Parts   []v1alpha1.MessagePart `json:"parts,omitempty"`
	// History in the place of both is what was said before, in a conversation that was led elsewhere.
	History []v1alpha1.PriorMessage `json:"history,omitempty"`
	// WhenBusy is what the message does to the turn under way. Default: Queue.
	WhenBusy v1alpha1.WhenBusy `json:"whenBusy,omitempty"`
	// Visibility is for whom it is. Default: All.
	Visibility v1alpha1.MessageVisibility `json:"visibility,omitempty"`
	// ModelConfig is the name of the ChatModelConfig that answers it. Default: the chat's.
	ModelConfig string `json:"modelConfig,omitempty"`
	// ReasoningEffort is how much the model thinks. Default: the chat's.
	ReasoningEffort v1alpha1.ReasoningEffort `json:"reasoningEffort,omitempty"`
	// Output is the JSON Schema that the answer matches. Default: the chat's.
	Output *v1alpha1.OutputFormat `json:"output,omitempty"`
	// ToolChoice is whether the first reply calls tools. Default: the model decides.
	ToolChoice *v1alpha1.ToolChoice `json:"toolChoice,omitempty"`
	// Stop are texts at which the model stops.
	Stop []string `json:"stop,omitempty"`
}

// Edit is what a message says from now on.
type Edit struct {
	// ResourceVersion of the ChatMessage that the edit is of: if it was changed since, the edit is refused as Conflict.
	// Empty: it is made whatever was changed.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Content is a text, and Parts in its place are texts and files.
	Content string                 `json:"content,omitempty"`
	Parts   []v1alpha1.MessagePart `json:"parts,omitempty"`
}

// Send says something to a chat. It is answered at once or waits in the queue; the stream of the chat tells.
func (n Namespace) Send(ctx context.Context, chat string, message NewMessage) (*v1alpha1.ChatMessage, error) {
	return call[v1alpha1.ChatMessage](ctx, n, http.MethodPost, nil, message, "chats", chat, "messages")
}

// GetMessage reads a message of a chat.
func (n Namespace) GetMessage(ctx context.Context, chat, message string) (*v1alpha1.ChatMessage, error) {
	return call[v1alpha1.ChatMessage](ctx, n, http.MethodGet, nil, nil, "chats", chat, "messages", message)
}

// EditMessage changes what a message says. What followed it is superseded, and the chat continues from there.
func (n Namespace) EditMessage(ctx context.Context, chat, message string, edit Edit) (*v1alpha1.ChatMessage, error) {
	return call[v1alpha1.ChatMessage](ctx, n, http.MethodPatch, nil, edit, "chats", chat, "messages", message)
}

// DeleteMessage deletes a message. What followed it is superseded, too.
func (n Namespace) DeleteMessage(ctx context.Context, chat, message string) error {
	return n.remove(ctx, "chats", chat, "messages", message)
}

// Promote lets a message that waits be next, and stops the turn under way.
func (n Namespace) Promote(ctx context.Context, chat, message string) (*v1alpha1.ChatMessage, error) {
	return call[v1alpha1.ChatMessage](ctx, n, http.MethodPost, nil, nil, "chats", chat, "messages", message, "promote")
}
