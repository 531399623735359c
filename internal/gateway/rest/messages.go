// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/text/compose"
)

// maxHistoryBytes is how much of a history one answer has, without its last message: 4 MiB.
const maxHistoryBytes = 4 << 20

// OfMessage is the message that a request is about.
type OfMessage struct {
	OfChat

	Message string `path:"message" pattern:"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" maxLength:"253" doc:"The name of the ChatMessage."`
}

// NewMessage is a message to a chat.
type NewMessage struct {
	OfChat

	Body struct {
		Name            string                    `json:"name,omitempty" maxLength:"253" doc:"Its name. A second request with it says nothing again (409). Default: the API server makes one up."`
		Content         string                    `json:"content,omitempty" doc:"What is said, as spec.content of a ChatMessage."`
		Parts           []Fields                  `json:"parts,omitempty" doc:"In place of content: as spec.parts of a ChatMessage, for files."`
		History         []Fields                  `json:"history,omitempty" doc:"In place of content: as spec.history of a ChatMessage, what was said before, elsewhere."`
		WhenBusy        v1beta1.WhenBusy          `json:"whenBusy,omitempty" doc:"As spec.whenBusy."`
		Visibility      v1beta1.MessageVisibility `json:"visibility,omitempty" doc:"As spec.visibility."`
		ModelConfig     string                    `json:"modelConfig,omitempty" doc:"As spec.modelConfigRef.name."`
		ReasoningEffort v1beta1.ReasoningEffort   `json:"reasoningEffort,omitempty" doc:"As spec.reasoningEffort."`
		Output          Fields                    `json:"output,omitempty" doc:"As spec.output: the JSON Schema that the answer matches."`
		ToolChoice      Fields                    `json:"toolChoice,omitempty" doc:"As spec.toolChoice."`
		Stop            []string                  `json:"stop,omitempty" doc:"As spec.stop."`
	}
}

// ChangeMessage edits a message. The chat continues from there.
type ChangeMessage struct {
	OfMessage

	Body struct {
		ResourceVersion string   `json:"resourceVersion,omitempty" doc:"Of the ChatMessage that the change is of: if it was changed since, nothing happens (409)."`
		Content         string   `json:"content,omitempty" doc:"What it says now."`
		Parts           []Fields `json:"parts,omitempty" doc:"In place of content."`
		HeldUntil       string   `json:"heldUntil,omitempty" maxLength:"64" doc:"The annotation parley.dev/hold-until, as your hold answered it: this hold ends. The hold of another editor stays."`
	}
}

// ListMessages are the parameters of a page of a history.
type ListMessages struct {
	OfChat

	Before string `query:"before" pattern:"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" maxLength:"253" doc:"The name of a message of the history, to list those before it. Default: the newest ones."`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"100" doc:"How many to list at most. There are fewer if they are large."`
}

// Messages are a page of a history.
type Messages struct {
	Body struct {
		Messages []Committed `json:"messages" doc:"The messages, the oldest first."`
	}
}

// Committed is a committed message as the stream of its chat sends it.
type Committed json.RawMessage

// MarshalJSON is the data of the event.
func (c Committed) MarshalJSON() ([]byte, error) { return c, nil }

// Schema describes the data.
func (Committed) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true,
		Description: "The data of the event message of the chat's stream."}
}

func (a *api) messages() {
	const path = "/namespaces/{namespace}/chats/{chat}/messages"
	register(a, operation("listMessages", http.MethodGet, path, "Read a piece of the history",
		"From its end, or from a message back, along the chain that the messages are.", http.StatusOK), a.listMessages)
	register(a, operation("sendMessage", http.MethodPost, path, "Send a message",
		"It is answered at once, or waits in the queue, as whenBusy says. The stream of the chat reports its progress.",
		http.StatusCreated), a.sendMessage)
	register(a, operation("getMessage", http.MethodGet, path+"/{message}", "Read a message", "", http.StatusOK),
		func(ctx context.Context, in *OfMessage) (*Answer[v1beta1.ChatMessage], error) {
			return answerWith(a.findMessage(ctx, in))
		})
	register(a, operation("editMessage", http.MethodPatch, path+"/{message}", "Edit a message",
		"What followed it is superseded, and the chat continues from there.", http.StatusOK),
		a.editMessage)
	register(a, operation("deleteMessage", http.MethodDelete, path+"/{message}", "Delete a message",
		"What followed it is superseded, too.", http.StatusNoContent), a.deleteMessage)
}

func (a *api) sendMessage(ctx context.Context, in *NewMessage) (*Answer[v1beta1.ChatMessage], error) {
	b := &in.Body
	spec := v1beta1.ChatMessageSpec{Content: b.Content, WhenBusy: b.WhenBusy, Visibility: b.Visibility,
		ReasoningEffort: b.ReasoningEffort, Stop: b.Stop}
	if b.ModelConfig != "" {
		spec.ModelConfigRef = &v1beta1.ModelConfigReference{Name: b.ModelConfig}
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
	message := compose.Message(in.Namespace, in.Chat, b.Name, spec)
	return answerWith(a.client.Messages(in.Namespace).Create(ctx, message))
}

// findMessage reads a message of the chat. A message of another chat is not found.
func (a *api) findMessage(ctx context.Context, of *OfMessage) (*v1beta1.ChatMessage, error) {
	m, err := a.client.Messages(of.Namespace).Get(ctx, of.Message)
	if err != nil {
		return nil, err
	}
	if m.Spec.ChatRef.Name != of.Chat {
		return nil, refused{&refusal.Error{Status: http.StatusNotFound, Reason: refusal.NotFound,
			Message: "chat " + of.Chat + " has no message " + of.Message}}
	}
	return m, nil
}

func (a *api) editMessage(ctx context.Context, in *ChangeMessage) (*Answer[v1beta1.ChatMessage], error) {
	m, err := a.findMessage(ctx, &in.OfMessage)
	if err != nil {
		return nil, err
	}
	content := map[string]any{"content": nil, "parts": nil, "history": nil}
	if in.Body.Content != "" {
		content["content"] = in.Body.Content
	}
	if len(in.Body.Parts) > 0 {
		if err := into("parts", in.Body.Parts, &[]v1beta1.MessagePart{}); err != nil {
			return nil, err
		}
		content["parts"] = in.Body.Parts
	}
	metadata := map[string]any{"uid": m.UID} // The edit is of the message that was read.
	if version := in.Body.ResourceVersion; version != "" {
		metadata["resourceVersion"] = version
	}
	if until := in.Body.HeldUntil; until != "" && until == m.Annotations[v1beta1.AnnotationHoldUntil] {
		metadata["annotations"] = map[string]any{v1beta1.AnnotationHoldUntil: nil}
	}
	return answerWith(a.client.Messages(m.Namespace).MergePatch(ctx, m.Name,
		map[string]any{"metadata": metadata, "spec": content}))
}

func (a *api) deleteMessage(ctx context.Context, in *OfMessage) (*struct{}, error) {
	m, err := a.findMessage(ctx, in)
	if err != nil {
		return nil, err
	}
	return nil, a.client.Messages(in.Namespace).Delete(ctx, in.Message,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.UID}})
}

func (a *api) listMessages(ctx context.Context, in *ListMessages) (*Messages, error) {
	chat, err := a.client.Chats(in.Namespace).Get(ctx, in.Chat)
	if err != nil {
		return nil, err
	}
	name, index := chat.Status.History.Head, chat.Status.History.Length-1
	if in.Before != "" {
		known, err := a.client.Messages(in.Namespace).Get(ctx, in.Before)
		if err != nil {
			return nil, err
		}
		place, ok := placeIn(chat, known)
		if !ok {
			return nil, badRequest("message %s is not in the history of chat %s", in.Before, in.Chat)
		}
		name, index = place.Parent, place.Index-1
	}
	out := &Messages{}
	out.Body.Messages, err = a.walk(ctx, chat, name, index, in.Limit)
	return out, err
}

// walk reads messages back from a name of the history. A missing one ends it.
func (a *api) walk(ctx context.Context, chat *v1beta1.Chat, name string, index int64, most int) ([]Committed, error) {
	all, bytes, next := []Committed{}, 0, (*follow.Committed)(nil)
	for ; name != "" && index >= 0 && len(all) < most && bytes < maxHistoryBytes; index-- {
		message, err := a.client.Messages(chat.Namespace).Get(ctx, name)
		if apierrors.IsNotFound(err) {
			break
		}
		if err != nil {
			return nil, err
		}
		committed, err := follow.Commit(chat, message, follow.PlaceOf(chat, name, index, next))
		if errors.Is(err, follow.ErrMissing) || errors.Is(err, follow.ErrUnsettled) {
			break
		}
		if err != nil {
			return nil, err
		}
		all, bytes, name = append(all, Committed(committed.Data)), bytes+len(committed.Data), committed.Parent
		next = committed
	}
	slices.Reverse(all)
	return all, nil
}

// placeIn is the place of a message in the chat's history. It is false if the message has none.
func placeIn(chat *v1beta1.Chat, message *v1beta1.ChatMessage) (history.Node, bool) {
	place := history.Of(chat, message)
	return place, place.Placed && message.Spec.ChatRef.Name == chat.Name && history.MayHold(chat, message)
}
