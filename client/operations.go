// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
)

// ChatPage is a page of the list of chats.
type ChatPage struct {
	// Chats of the page, by name.
	Chats []stream.Summary `json:"chats"`
	// Continue is the token of the next page; empty for the last one.
	Continue string `json:"continue"`
}

// NewChat is a chat to create.
type NewChat struct {
	// Name of the chat; empty: the API server generates one. A second request with a name is refused as AlreadyExists.
	Name string `json:"name,omitempty"`
	// Prefix of a generated name. Default: chat-.
	Prefix string `json:"prefix,omitempty"`
	// Labels of the chat.
	Labels map[string]string `json:"labels,omitempty"`
	// Spec of the chat. With a prompt it begins at once.
	Spec v1beta1.ChatSpec `json:"spec"`
}

// Change is a change of a chat.
type Change struct {
	// ResourceVersion of the Chat that is changed: if another change came first, this one is refused as Conflict.
	// Optional.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Spec holds the fields of Chat.spec to change, as a JSON merge patch: nil removes one.
	Spec map[string]any `json:"spec"`
}

// ListChats lists at most limit chats (0: 500, which is the maximum). next is the Continue of the page before.
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
func (n Namespace) CreateChat(ctx context.Context, chat NewChat) (*v1beta1.Chat, error) {
	return call[v1beta1.Chat](ctx, n, http.MethodPost, nil, chat, "chats")
}

// GetChat reads a chat.
func (n Namespace) GetChat(ctx context.Context, chat string) (*v1beta1.Chat, error) {
	return call[v1beta1.Chat](ctx, n, http.MethodGet, nil, nil, "chats", chat)
}

// ChangeChat changes a chat, such as its title, or whether it is suspended or archived.
func (n Namespace) ChangeChat(ctx context.Context, chat string, change Change) (*v1beta1.Chat, error) {
	return call[v1beta1.Chat](ctx, n, http.MethodPatch, nil, change, "chats", chat)
}

// DeleteChat deletes a chat with its messages and sub-chats.
func (n Namespace) DeleteChat(ctx context.Context, chat string) error {
	return n.remove(ctx, "chats", chat)
}

// call makes a request about an object of the namespace, which is answered with a T.
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

func (n Namespace) remove(ctx context.Context, words ...string) error {
	path, err := n.path(words...)
	if err != nil {
		return err
	}
	return n.client.do(ctx, http.MethodDelete, path, nil, nil, nil)
}

// NewMessage is a message to create. Its fields are those of ChatMessage.spec.
type NewMessage struct {
	// Name of the message; empty: the API server generates one. A second request with a name is refused as AlreadyExists.
	Name string `json:"name,omitempty"`
	// Content is a text, and Parts in its place are texts and files.
	Content string                `json:"content,omitempty"`
	Parts   []v1beta1.MessagePart `json:"parts,omitempty"`
	// History, in place of both, is an earlier conversation.
	History []v1beta1.PriorMessage `json:"history,omitempty"`
	// WhenBusy is what the message does to the turn under way. Default: Queue.
	WhenBusy v1beta1.WhenBusy `json:"whenBusy,omitempty"`
	// Visibility is for whom it is. Default: All.
	Visibility v1beta1.MessageVisibility `json:"visibility,omitempty"`
	// ModelConfig is the name of the ChatModelConfig that answers it. Default: the chat's.
	ModelConfig string `json:"modelConfig,omitempty"`
	// ReasoningEffort is how much the model thinks. Default: the chat's.
	ReasoningEffort v1beta1.ReasoningEffort `json:"reasoningEffort,omitempty"`
	// Output is the JSON Schema that the answer matches. Default: the chat's.
	Output *v1beta1.OutputFormat `json:"output,omitempty"`
	// ToolChoice is whether the first reply calls tools. Default: the model decides.
	ToolChoice *v1beta1.ToolChoice `json:"toolChoice,omitempty"`
	// Stop are texts at which the model stops.
	Stop []string `json:"stop,omitempty"`
}

// Edit is the new content of a message.
type Edit struct {
	// ResourceVersion of the ChatMessage that is edited: if another edit came first, this one is refused as Conflict.
	// Optional.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Content is a text, and Parts in its place are texts and files.
	Content string                `json:"content,omitempty"`
	Parts   []v1beta1.MessagePart `json:"parts,omitempty"`
}

// Send creates a message. It is answered at once or waits in the queue; the stream of the chat shows which.
func (n Namespace) Send(ctx context.Context, chat string, message NewMessage) (*v1beta1.ChatMessage, error) {
	return call[v1beta1.ChatMessage](ctx, n, http.MethodPost, nil, message, "chats", chat, "messages")
}

// GetMessage reads a message of a chat.
func (n Namespace) GetMessage(ctx context.Context, chat, message string) (*v1beta1.ChatMessage, error) {
	return call[v1beta1.ChatMessage](ctx, n, http.MethodGet, nil, nil, "chats", chat, "messages", message)
}

// EditMessage changes the content of a message. What followed it is superseded, and the chat continues from there.
func (n Namespace) EditMessage(ctx context.Context, chat, message string, edit Edit) (*v1beta1.ChatMessage, error) {
	return call[v1beta1.ChatMessage](ctx, n, http.MethodPatch, nil, edit, "chats", chat, "messages", message)
}

// DeleteMessage deletes a message. What followed it is superseded, too.
func (n Namespace) DeleteMessage(ctx context.Context, chat, message string) error {
	return n.remove(ctx, "chats", chat, "messages", message)
}

// Promote lets a message that waits be next, and stops the turn under way.
func (n Namespace) Promote(ctx context.Context, chat, message string) (*v1beta1.ChatMessage, error) {
	return call[v1beta1.ChatMessage](ctx, n, http.MethodPost, nil, nil, "chats", chat, "messages", message, "promote")
}

// Request is a request of a chat, which is handled once.
type Request struct {
	// Kind of the request, such as v1beta1.RequestInterrupt.
	Kind v1beta1.RequestKind `json:"kind"`
	// Token identifies the request: a second one with the same token has no effect. Default: the time.
	Token string `json:"token,omitempty"`
	// WaitSeconds is how long to wait for the outcome, at most 20. nil: 10.
	WaitSeconds *int `json:"-"`
}

// Requested is the outcome of a request.
type Requested struct {
	// Kind and Token are the request's.
	Kind  v1beta1.RequestKind `json:"kind"`
	Token string              `json:"token"`
	// Outcome is empty if the chat has not acted yet: status.requests of the Chat will have it.
	Outcome v1beta1.RequestOutcome `json:"outcome"`
	// Message is why it was refused.
	Message string `json:"message"`
}

// Decision is a decision about a call that waits for approval. Its fields are those of ToolApproval.spec.
type Decision struct {
	// Name of the ToolApproval; empty: the API server generates one.
	Name string `json:"name,omitempty"`
	// ToolCallID is the id of the call, from status.requiresAction of the Chat.
	ToolCallID string `json:"toolCallID"`
	// Decision is whether it may run.
	Decision v1beta1.ApprovalDecision `json:"decision"`
	// Digest of the call that the person has seen, from status.requiresAction of the Chat, or by CallDigest of what was
	// shown. Required to approve.
	Digest string `json:"digest,omitempty"`
	// Comment is why; the model reads it when the call is denied.
	Comment string `json:"comment,omitempty"`
	// Content is the input that the call asks for: a JSON object.
	Content string `json:"content,omitempty"`
}

// Results holds the results of all calls of a reply that wait for a client.
type Results struct {
	// Name of the ChatMessage; empty: the API server generates one.
	Name string `json:"name,omitempty"`
	// Results has one for each call.
	Results []Result `json:"results"`
}

// Result is the result of a call.
type Result struct {
	// ID of the call.
	ID string `json:"id"`
	// Output is JSON, or a text.
	Output string `json:"output"`
	// IsError is true when the call failed; Output then says why.
	IsError bool `json:"isError,omitempty"`
}

// Request makes a request of a chat once, and waits for the outcome.
func (n Namespace) Request(ctx context.Context, chat string, request Request) (*Requested, error) {
	query := url.Values{}
	if request.WaitSeconds != nil {
		query.Set("wait", strconv.Itoa(*request.WaitSeconds))
	}
	return call[Requested](ctx, n, http.MethodPost, query, request, "chats", chat, "requests")
}

// Decide creates a decision about a call that waits for approval. The stream of the chat shows when it applies.
func (n Namespace) Decide(ctx context.Context, chat string, decision Decision) (*v1beta1.ToolApproval, error) {
	return call[v1beta1.ToolApproval](ctx, n, http.MethodPost, nil, decision, "chats", chat, "approvals")
}

// Answer sends the results of the calls that wait for a client, all of them at once.
func (n Namespace) Answer(ctx context.Context, chat string, results Results) (*v1beta1.ChatMessage, error) {
	return call[v1beta1.ChatMessage](ctx, n, http.MethodPost, nil, results, "chats", chat, "results")
}

// ModelConfig is the summary of a ChatModelConfig in a list.
type ModelConfig struct {
	Name string `json:"name"`
	// Provider serves the model, and Model is what it calls it.
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// Default is true for the one that answers chats which name none.
	Default bool `json:"default"`
	// Disabled is true for one that answers no chat.
	Disabled bool `json:"disabled"`
	// Ready is whether it can answer.
	Ready bool `json:"ready"`
}

// ChatClass is the summary of a ChatClass in a list.
type ChatClass struct {
	Name string `json:"name"`
	// Description is what its chats are for.
	Description string `json:"description"`
	// FirstPrompts are first messages to offer to people.
	FirstPrompts []string `json:"firstPrompts"`
	// Default is true for the one that chats have which name none.
	Default bool `json:"default"`
	// Ready is whether it is in force.
	Ready bool `json:"ready"`
}

// ModelConfigs lists the ChatModelConfigs that may answer chats, by name.
func (n Namespace) ModelConfigs(ctx context.Context) ([]ModelConfig, error) {
	list, err := call[struct {
		ModelConfigs []ModelConfig `json:"modelConfigs"`
	}](ctx, n, http.MethodGet, nil, nil, "modelconfigs")
	if err != nil {
		return nil, err
	}
	return list.ModelConfigs, nil
}

// ChatClasses lists the classes that chats may have, by name.
func (n Namespace) ChatClasses(ctx context.Context) ([]ChatClass, error) {
	list, err := call[struct {
		ChatClasses []ChatClass `json:"chatClasses"`
	}](ctx, n, http.MethodGet, nil, nil, "chatclasses")
	if err != nil {
		return nil, err
	}
	return list.ChatClasses, nil
}
