// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/compose"
)

// NewRequest asks a chat for something once.
type NewRequest struct {
	OfChat

	Wait int32 `query:"wait" minimum:"0" maximum:"20" default:"10" doc:"How many seconds to wait until the chat has acted."`
	Body struct {
		Kind  v1beta1.RequestKind `json:"kind" enum:"Interrupt,Clear,Compact,Title,RefreshContext" doc:"What the chat is to do."`
		Token string              `json:"token,omitempty" maxLength:"128" doc:"Names the request: a second one with it asks for nothing again. Default: the time."`
	}
}

// Requested is the outcome of a request.
type Requested struct {
	Body struct {
		Kind    v1beta1.RequestKind    `json:"kind" doc:"What was asked for."`
		Token   string                 `json:"token" doc:"Its name, in status.requests of the Chat."`
		Outcome v1beta1.RequestOutcome `json:"outcome,omitempty" doc:"Done or Refused; absent: the chat has not acted yet."`
		Message string                 `json:"message,omitempty" doc:"Why it was refused."`
	}
}

// NewApproval decides about a call that waits for approval.
type NewApproval struct {
	OfChat

	Body struct {
		Name       string                   `json:"name,omitempty" maxLength:"253" doc:"The name of the ToolApproval. Default: the API server makes one up."`
		ToolCallID string                   `json:"toolCallID" minLength:"1" doc:"The call, from status.requiresAction of the Chat."`
		Decision   v1beta1.ApprovalDecision `json:"decision" enum:"Approve,Deny" doc:"Whether it may run."`
		Digest     string                   `json:"digest,omitempty" doc:"The digest of the call that the person has seen, from status.requiresAction of the Chat. Required to approve."`
		Comment    string                   `json:"comment,omitempty" doc:"Why; the model reads it when the call is denied."`
		Content    string                   `json:"content,omitempty" doc:"The input that the call asks for: a JSON object."`
	}
}

// NewResults are the results of calls that wait for a client.
type NewResults struct {
	OfChat

	Body struct {
		Name    string       `json:"name,omitempty" maxLength:"253" doc:"The name of the ChatMessage. Default: the API server makes one up."`
		Results []ToolResult `json:"results" minItems:"1" maxItems:"64" doc:"One for each call that waits for a client."`
	}
}

// ToolResult is the result of one call.
type ToolResult struct {
	ID      string `json:"id" minLength:"1" doc:"The call."`
	Output  string `json:"output" doc:"What came of it: JSON, or a text."`
	IsError bool   `json:"isError,omitempty" doc:"Whether it failed."`
}

// decideCall is the operation that needs a role of its own.
const decideCall = "decideCall"

func (a *api) steering() {
	const path = "/namespaces/{namespace}/chats/{chat}"
	register(a, operation("makeRequest", http.MethodPost, path+"/requests", "Ask a chat for something once",
		"To stop its turn, to begin a new context, to compact that, for another title, or to read the context of the "+
			"workspace again.",
		http.StatusOK), a.makeRequest)
	register(a, operation(decideCall, http.MethodPost, path+"/approvals", "Decide about a call that waits for approval",
		"The stream reports when it applies.", http.StatusCreated), a.decideCall)
	register(a, operation("answerCalls", http.MethodPost, path+"/results",
		"Bring the results of calls that wait for a client", "All of them at once.", http.StatusCreated), a.answerCalls)
}

func (a *api) makeRequest(ctx context.Context, in *NewRequest) (*Requested, error) {
	token := in.Body.Token
	if token == "" {
		token = a.options.Now().UTC().Format(time.RFC3339Nano)
	}
	chat, err := a.client.Chats(in.Namespace).MergePatch(ctx, in.Chat, compose.Request(in.Body.Kind, token))
	if err != nil {
		return nil, err
	}
	out := &Requested{}
	out.Body.Kind, out.Body.Token = in.Body.Kind, token
	ctx, cancel := context.WithTimeout(ctx, time.Duration(in.Wait)*time.Second)
	defer cancel()
	handled, err := a.awaitRequest(ctx, chat, in.Body.Kind, token)
	if err != nil {
		return nil, err
	}
	if handled != nil {
		out.Body.Outcome, out.Body.Message = handled.Outcome, handled.Message
	}
	return out, nil
}

// awaitRequest waits for the outcome of a request. It is nil if ctx is done before.
func (a *api) awaitRequest(ctx context.Context, chat *v1beta1.Chat, kind v1beta1.RequestKind, token string) (
	*v1beta1.HandledRequest, error) {
	if known := handledOf(chat, kind, token); known != nil { // It was made before.
		return known, nil
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	events, err := a.client.Chats(chat.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + chat.Name, ResourceVersion: chat.ResourceVersion})
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, nil
		}
		return nil, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		now, ok := event.Object.(*v1beta1.Chat)
		if !ok {
			return nil, nil // The API server ends the watch.
		}
		if known := handledOf(now, kind, token); known != nil {
			return known, nil
		}
	}
	return nil, nil
}

// handledOf is the outcome of a request; nil if the chat has not acted yet.
func handledOf(chat *v1beta1.Chat, kind v1beta1.RequestKind, token string) *v1beta1.HandledRequest {
	i := slices.IndexFunc(chat.Status.Requests,
		func(h v1beta1.HandledRequest) bool { return h.Kind == kind && h.Token == token })
	if i < 0 {
		return nil
	}
	return &chat.Status.Requests[i]
}

func (a *api) decideCall(ctx context.Context, in *NewApproval) (*Answer[v1beta1.ToolApproval], error) {
	b := &in.Body
	decision := compose.Decision(in.Namespace, in.Chat, b.Name, v1beta1.ToolApprovalSpec{
		ToolCallID: b.ToolCallID, Decision: b.Decision, Digest: b.Digest, Comment: b.Comment, Content: b.Content})
	return answerWith(a.client.Approvals(in.Namespace).Create(ctx, decision))
}

func (a *api) answerCalls(ctx context.Context, in *NewResults) (*Answer[v1beta1.ChatMessage], error) {
	results := each(in.Body.Results, func(r *ToolResult) v1beta1.ToolResult {
		return v1beta1.ToolResult{ID: r.ID, Output: r.Output, IsError: r.IsError}
	})
	message := compose.Results(in.Namespace, in.Chat, in.Body.Name, results)
	return answerWith(a.client.Messages(in.Namespace).Create(ctx, message))
}
