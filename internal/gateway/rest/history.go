// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/gateway/follow"
)

// maxHistoryBytes is how much of a history one answer has, but for its last message: 4 MiB.
const maxHistoryBytes = 4 << 20

// ListMessages are the parameters of a piece of a history.
type ListMessages struct {
	OfChat

	Before string `query:"before" pattern:"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" maxLength:"253" doc:"The name of a message of the history, to list those before it. Default: the newest ones."`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"100" doc:"How many to list at most. There are fewer if they are large."`
}

// Messages are a piece of a history.
type Messages struct {
	Body struct {
		Messages []Told `json:"messages" doc:"The messages, the oldest first."`
	}
}

// Told is a committed message as the stream of its chat tells it.
type Told json.RawMessage

// MarshalJSON is the data of the event.
func (t Told) MarshalJSON() ([]byte, error) { return t, nil }

// Schema says what it is.
func (Told) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true,
		Description: "The data of the event message of the chat's stream."}
}

func (s messages) list(ctx context.Context, in *ListMessages) (*Messages, error) {
	chat, err := s.client.Chats(in.Namespace).Get(ctx, in.Chat)
	if err != nil {
		return nil, from(ctx, err)
	}
	name, index := chat.Status.History.Head, chat.Status.History.Length-1
	if in.Before != "" {
		known, err := s.client.Messages(in.Namespace).Get(ctx, in.Before)
		if err != nil {
			return nil, from(ctx, err)
		}
		place, ok := placeIn(chat, known)
		if !ok {
			return nil, badRequest("message %s is not in the history of chat %s", in.Before, in.Chat)
		}
		name, index = place.Parent, place.Index-1
	}
	out := &Messages{}
	out.Body.Messages, err = s.walk(ctx, chat, name, index, in.Limit)
	return out, err
}

// walk reads messages from a name of the history back. One that is missing ends it.
func (s messages) walk(ctx context.Context, chat *v1alpha1.Chat, name string, index int64, most int) ([]Told, error) {
	told, bytes, next := []Told{}, 0, (*follow.Committed)(nil)
	for ; name != "" && index >= 0 && len(told) < most && bytes < maxHistoryBytes; index-- {
		message, err := s.client.Messages(chat.Namespace).Get(ctx, name)
		if apierrors.IsNotFound(err) {
			break
		}
		if err != nil {
			return nil, from(ctx, err)
		}
		committed, err := follow.Commit(chat, message, follow.PlaceOf(chat, name, index, next))
		if errors.Is(err, follow.ErrMissing) || errors.Is(err, follow.ErrUnsettled) {
			break
		}
		if err != nil {
			return nil, from(ctx, err)
		}
		told, bytes, name = append(told, Told(committed.Data)), bytes+len(committed.Data), committed.Parent
		next = committed
	}
	slices.Reverse(told)
	return told, nil
}

// placeIn is where a message stands in the chat's history, as far as the two say it.
func placeIn(chat *v1alpha1.Chat, message *v1alpha1.ChatMessage) (history.Node, bool) {
	place := history.Of(chat, message)
	return place, place.Placed && message.Spec.ChatRef.Name == chat.Name && history.MayHold(chat, message)
}
