// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/text/compose"
)

// ReleaseMessage ends a hold.
type ReleaseMessage struct {
	OfMessage

	HeldUntil string `query:"heldUntil" maxLength:"64" doc:"The annotation parley.dev/hold-until, as your hold answered it. Default: that of any editor."`
}

// queue are the operations on messages that wait.
type queue struct{ api *api }

func (q queue) register() {
	const path = "/namespaces/{namespace}/chats/{chat}/messages/{message}"
	register(q.api, operation("promoteMessage", http.MethodPost, path+"/promote", "Let a message that waits be next",
		"The turn under way is stopped, and what was said so far kept. One that does not wait is not changed (409).",
		http.StatusOK), q.promote)
	register(q.api, operation("holdMessage", http.MethodPut, path+"/hold", "Hold a message that waits while you edit it",
		"The chat does not start it for 5 minutes, or until it is edited or released. Hold it again before that to have "+
			"more time. One that does not wait is not changed (409).", http.StatusOK), q.hold)
	register(q.api, operation("releaseMessage", http.MethodDelete, path+"/hold", "Release a message that is held",
		"With heldUntil, the hold of another editor stays.", http.StatusNoContent), q.release)
}

func (q queue) promote(ctx context.Context, in *OfMessage) (*Answer[v1beta1.ChatMessage], error) {
	m, err := q.find(ctx, in)
	if err != nil {
		return nil, err
	}
	patch := compose.Promotion()
	patch["metadata"] = map[string]any{"uid": m.UID}
	return answerWith(q.api.client.Messages(in.Namespace).MergePatch(ctx, m.Name, patch))
}

func (q queue) hold(ctx context.Context, in *OfMessage) (*Answer[v1beta1.ChatMessage], error) {
	m, err := q.find(ctx, in)
	if err != nil {
		return nil, err
	}
	return answerWith(q.api.client.Messages(in.Namespace).MergePatch(ctx, m.Name, compose.Hold(m, q.api.options.Now())))
}

func (q queue) release(ctx context.Context, in *ReleaseMessage) (*struct{}, error) {
	m, err := q.api.findMessage(ctx, &in.OfMessage)
	if err != nil {
		return nil, err
	}
	until := m.Annotations[v1beta1.AnnotationHoldUntil]
	if until == "" || in.HeldUntil != "" && in.HeldUntil != until {
		return nil, nil
	}
	_, err = q.api.client.Messages(in.Namespace).JSONPatch(ctx, m.Name, compose.Release(m, until))
	if apierrors.IsInvalid(err) { // Another editor has held it since.
		err = nil
	}
	return nil, err
}

// find reads a message that waits. A change has no effect on one that is started meanwhile.
func (q queue) find(ctx context.Context, in *OfMessage) (*v1beta1.ChatMessage, error) {
	m, err := q.api.findMessage(ctx, in)
	if err != nil {
		return nil, err
	}
	chat, err := q.api.client.Chats(in.Namespace).Get(ctx, in.Chat)
	if err != nil || history.Waits(chat, m) {
		return m, err
	}
	state := m.Status.State
	if history.RecordedBy(chat, m.Name) != nil {
		state = v1beta1.MessageCommitted
	}
	return nil, refused{&refusal.Error{Status: http.StatusConflict, Reason: refusal.Conflict,
		Message: fmt.Sprintf("message %s does not wait: it is %s", in.Message, state)}}
}
