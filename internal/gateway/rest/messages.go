// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/text/compose"
)

// OfMessage is the message that a request is about.
type OfMessage struct {
	OfChat

	Message string `path:"message" pattern:"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" maxLength:"253" doc:"The name of the ChatMessage."`
}

// NewMessage says something to a chat.
type NewMessage struct {
	OfChat

	Body struct {
		Name            string                     `json:"name,omitempty" maxLength:"253" doc:"Its name. A second request with it says nothing again (409). Default: the API server makes one up."`
		Content         string                     `json:"content,omitempty" doc:"What is said, as spec.content of a ChatMessage."`
		Parts           []Fields                   `json:"parts,omitempty" doc:"In place of content: as spec.parts of a ChatMessage, for files."`
		History         []Fields                   `json:"history,omitempty" doc:"In place of content: as spec.history of a ChatMessage, what was said before, elsewhere."`
		WhenBusy        v1alpha1.WhenBusy          `json:"whenBusy,omitempty" doc:"As spec.whenBusy."`
		Visibility      v1alpha1.MessageVisibility `json:"visibility,omitempty" doc:"As spec.visibility."`
		ModelConfig     string                     `json:"modelConfig,omitempty" doc:"As spec.modelConfigRef.name."`
		ReasoningEffort v1alpha1.ReasoningEffort   `json:"reasoningEffort,omitempty" doc:"As spec.reasoningEffort."`
		Output          Fields                     `json:"output,omitempty" doc:"As spec.output: the JSON Schema that the answer matches."`
		ToolChoice      Fields                     `json:"toolChoice,omitempty" doc:"As spec.toolChoice."`
		Stop            []string                   `json:"stop,omitempty" doc:"As spec.stop."`
	}
}

// ChangeMessage edits a message. The chat continues from there.
type ChangeMessage struct {
	OfMessage

	Body struct {
		ResourceVersion string   `json:"resourceVersion,omitempty" doc:"Of the ChatMessage that the change is of: if it was changed since, nothing happens (409)."`
		Content         string   `json:"content,omitempty" doc:"What it says now."`
		Parts           []Fields `json:"parts,omitempty" doc:"In place of content."`
	}
}

// OneMessage is a message.
type OneMessage struct {
	Body *Message
}

// messages are the operations on messages.
type messages struct{ client *apiclient.Client }

func (s messages) serve(a *api) {
	const path = "/namespaces/{namespace}/chats/{chat}/messages"
	register(a, operation("listMessages", http.MethodGet, path, "Read a piece of the history",
		"From its end, or from a message back, along the chain that the messages are.", http.StatusOK), s.list)
	register(a, operation("sendMessage", http.MethodPost, path, "Send a message",
		"It is answered at once, or waits in the queue, as whenBusy says. The stream of the chat reports its progress.",
		http.StatusCreated), s.send)
	register(a, operation("getMessage", http.MethodGet, path+"/{message}", "Read a message", "", http.StatusOK),
		s.get)
	register(a, operation("editMessage", http.MethodPatch, path+"/{message}", "Edit a message",
		"What followed it is superseded, and the chat continues from there.", http.StatusOK), s.edit)
	register(a, operation("deleteMessage", http.MethodDelete, path+"/{message}", "Delete a message",
		"What followed it is superseded, too.", http.StatusNoContent), s.delete)
	register(a, operation("promoteMessage", http.MethodPost, path+"/{message}/promote",
		"Let a message that waits be next",
		"The turn under way is stopped, and what was said so far kept. One that does not wait is not changed (409).",
		http.StatusOK),
		s.promote)
}

func (s messages) send(ctx context.Context, in *NewMessage) (*OneMessage, error) {
	b := &in.Body
	spec := v1alpha1.ChatMessageSpec{Content: b.Content, WhenBusy: b.WhenBusy, Visibility: b.Visibility,
		ReasoningEffort: b.ReasoningEffort, Stop: b.Stop}
	if b.ModelConfig != "" {
		spec.ModelConfigRef = &v1alpha1.ModelConfigReference{Name: b.ModelConfig}
	}
	for _, field := range []struct {
		name       string
		given, out any
	}{{"parts", b.Parts, &spec.Parts}, {"history", b.History, &spec.History}, {"output", b.Output, &spec.Output},
		{"toolChoice", b.ToolChoice, &spec.ToolChoice}} {
		if err := into(field.name, field.given, field.out); err != nil {
			return nil, err
		}
	}
	sent, err := s.client.Messages(in.Namespace).Create(ctx,
		compose.Message(in.Namespace, in.Chat, b.Name, spec))
	if err != nil {
		return nil, from(ctx, err)
	}
	return &OneMessage{shownMessage(sent)}, nil
}

// find reads a message of the chat. Of another chat's it says that there is none.
func (s messages) find(ctx context.Context, of *OfMessage) (*v1alpha1.ChatMessage, error) {
	m, err := s.client.Messages(of.Namespace).Get(ctx, of.Message)
	if err != nil {
		return nil, from(ctx, err)
	}
	if m.Spec.ChatRef.Name != of.Chat {
		return nil, refused{why: &refusal.Error{Status: http.StatusNotFound, Reason: refusal.NotFound,
			Message: "chat " + of.Chat + " has no message " + of.Message}}
	}
	return m, nil
}

func (s messages) get(ctx context.Context, in *OfMessage) (*OneMessage, error) {
	m, err := s.find(ctx, in)
	if err != nil {
		return nil, err
	}
	return &OneMessage{shownMessage(m)}, nil
}

func (s messages) edit(ctx context.Context, in *ChangeMessage) (*OneMessage, error) {
	m, err := s.find(ctx, &in.OfMessage)
	if err != nil {
		return nil, err
	}
	said := map[string]any{"content": nil, "parts": nil, "history": nil}
	if in.Body.Content != "" {
		said["content"] = in.Body.Content
	}
	if len(in.Body.Parts) > 0 {
		if err := into("parts", in.Body.Parts, &[]v1alpha1.MessagePart{}); err != nil {
			return nil, err
		}
		said["parts"] = in.Body.Parts
	}
	return s.patch(ctx, m, map[string]any{"spec": said}, in.Body.ResourceVersion)
}

func (s messages) promote(ctx context.Context, in *OfMessage) (*OneMessage, error) {
	m, err := s.find(ctx, in)
	if err != nil {
		return nil, err
	}
	// Of one that is taken up meanwhile the change means nothing.
	if state := m.Status.State; !slices.Contains(mayBeNext, state) {
		return nil, refused{why: &refusal.Error{Status: http.StatusConflict, Reason: refusal.Conflict,
			Message: fmt.Sprintf("message %s does not wait: it is %s", in.Message, state)}}
	}
	return s.patch(ctx, m, compose.Promotion(), "")
}

// mayBeNext are the states of messages that have not been taken up.
var mayBeNext = []v1alpha1.MessageState{"", v1alpha1.MessagePending, v1alpha1.MessageQueued}

// patch changes the very message that was looked at.
func (s messages) patch(ctx context.Context, m *v1alpha1.ChatMessage, patch map[string]any, version string) (
	*OneMessage, error) {
	only := map[string]any{"uid": m.UID}
	if version != "" {
		only["resourceVersion"] = version
	}
	patch["metadata"] = only
	changed, err := s.client.Messages(m.Namespace).MergePatch(ctx, m.Name, patch)
	if err != nil {
		return nil, from(ctx, err)
	}
	return &OneMessage{shownMessage(changed)}, nil
}

func (s messages) delete(ctx context.Context, in *OfMessage) (*struct{}, error) {
	m, err := s.find(ctx, in)
	if err != nil {
		return nil, err
	}
	return nil, from(ctx, s.client.Messages(in.Namespace).Delete(ctx, in.Message,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.UID}}))
}
