// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"parley.dev/parley/api/v1alpha1"
)

// Request asks a chat for something once.
type Request struct {
	// Kind is what is asked for, such as v1alpha1.RequestInterrupt.
	Kind v1alpha1.RequestKind `json:"kind"`
	// Token names the request: a second one with it asks for nothing again. Default: the time.
	Token string `json:"token,omitempty"`
	// WaitSeconds is how long to wait for what becomes of it, at most 20. nil: 10.
	WaitSeconds *int `json:"-"`
}

// Requested is what became of a request.
type Requested struct {
	// Kind and Token are the request's.
	Kind  v1alpha1.RequestKind `json:"kind"`
	Token string               `json:"token"`
	// Outcome is empty if the chat has not acted yet: status.requests of the Chat will say it.
	Outcome v1alpha1.RequestOutcome `json:"outcome"`
	// Message is why it was refused.
	Message string `json:"message"`
}

// Decision is what is decided about a call that waits for approval. Its fields are those of ToolApproval.spec.
type Decision struct {
	// Name of the ToolApproval; empty: the API server makes one up.
	Name string `json:"name,omitempty"`
	// ToolCallID is the id of the call, from status.requiresAction of the Chat.
	ToolCallID string `json:"toolCallID"`
	// Decision is whether it may run.
	Decision v1alpha1.ApprovalDecision `json:"decision"`
	// Digest of the call that the person has seen, from status.requiresAction of the Chat, or by CallDigest of what was
	// shown. Required to approve.
	Digest string `json:"digest,omitempty"`
	// Comment is why; the model reads it when the call is denied.
	Comment string `json:"comment,omitempty"`
	// Content is the input that the call asks for: a JSON object.
	Content string `json:"content,omitempty"`
}

// Results are those of all calls of a reply that wait for a client.
type Results struct {
	// Name of the ChatMessage; empty: the API server makes one up.
	Name string `json:"name,omitempty"`
	// Results has one for each call.
	Results []Result `json:"results"`
}

// Result is what came of a call.
type Result struct {
	// ID of the call.
	ID string `json:"id"`
	// Output is JSON, or a text.
	Output string `json:"output"`
	// IsError is true when the call failed; Output then says why.
	IsError bool `json:"isError,omitempty"`
}

// Request asks a chat for something once, and waits for what becomes of it.
func (n Namespace) Request(ctx context.Context, chat string, request Request) (*Requested, error) {
	query := url.Values{}
	if request.WaitSeconds != nil {
		query.Set("wait", strconv.Itoa(*request.WaitSeconds))
	}
	return call[Requested](ctx, n, http.MethodPost, query, request, "chats", chat, "requests")
}

// Decide decides about a call that waits for approval. The stream of the chat tells when that counts.
func (n Namespace) Decide(ctx context.Context, chat string, decision Decision) (*v1alpha1.ToolApproval, error) {
	return call[v1alpha1.ToolApproval](ctx, n, http.MethodPost, nil, decision, "chats", chat, "approvals")
}

// Answer brings the results of the calls that wait for a client, all of them at once.
func (n Namespace) Answer(ctx context.Context, chat string, results Results) (*v1alpha1.ChatMessage, error) {
	return call[v1alpha1.ChatMessage](ctx, n, http.MethodPost, nil, results, "chats", chat, "results")
}
