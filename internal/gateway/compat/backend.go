// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/turn"
)

const (
	// retriedWithin is how long after its end a repeated request may mean a turn.
	retriedWithin = 2 * time.Minute
	// suffixLength is how many characters a random name has behind its prefix.
	suffixLength = 10
	// maxConflicts is how often a change is tried that conflicts with others.
	maxConflicts = 5
	// maxRepeats is how many messages equal requests create whose turns all fail.
	maxRepeats = 100
)

// backend creates the chats and messages of requests and follows their turns, with the caller's own token. It keeps
// nothing: names and labels identify what a request has created.
type backend struct{ Options }

// caller is the client of a request.
type caller struct {
	// token is shown to the API server.
	token string
	// name distinguishes callers in the names of what they create. It gives no permission.
	name string
}

// exchange is a message and the chat that answers it.
type exchange struct {
	chat    *v1beta1.Chat
	message *v1beta1.ChatMessage
}

// begin creates what a request asks for, or finds what it has created before.
func (b *backend) begin(ctx context.Context, by caller, r *turn.Request) (exchange, error) {
	n := r.News()
	if len(n.Parts)+len(n.Results) == 0 {
		return exchange{}, bad("nothing follows the last reply: say something, or bring the results of calls")
	}
	if r.Retried && r.Key == "" { // A key names the message.
		if found, err := b.findRetried(ctx, by, r); err != nil || found.message != nil {
			return found, err
		}
	}
	chat, isNew, err := b.chat(ctx, by, r)
	if err != nil {
		return exchange{}, err
	}
	message, err := b.sendAll(ctx, by, r, chat)
	if isNew && isRefusal(err) {
		b.discard(ctx, chat)
	}
	return exchange{chat, message}, err
}

// discard deletes a chat that a request has created, unless someone else uses it. If that fails, the chat stays.
func (b *backend) discard(ctx context.Context, chat *v1beta1.Chat) {
	for range maxConflicts {
		messages, err := b.Client.Messages(chat.Namespace).List(ctx,
			metav1.ListOptions{FieldSelector: "spec.chatRef.name=" + chat.Name, Limit: 1})
		if err != nil || len(messages.Items) > 0 {
			return
		}
		err = b.Client.Chats(chat.Namespace).Delete(ctx, chat.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &chat.UID, ResourceVersion: &chat.ResourceVersion}})
		if !apierrors.IsConflict(err) {
			return
		}
		now, err := b.Client.Chats(chat.Namespace).Get(ctx, chat.Name)
		if err != nil || now.UID != chat.UID || now.Generation != chat.Generation {
			return
		}
		chat = now // Its status was written.
	}
}

// isRefusal reports whether the API server has refused a request, which then has changed nothing.
func isRefusal(err error) bool {
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) {
		return false
	}
	code := refused.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}

// findRetried finds the newest message of an equal request whose turn runs, or has ended a moment ago. Messages with
// results alone are found by their names.
func (b *backend) findRetried(ctx context.Context, by caller, r *turn.Request) (exchange, error) {
	list, err := b.Client.Messages(r.Namespace).List(ctx, metav1.ListOptions{Limit: 100, LabelSelector: fmt.Sprintf(
		"%s in (%s, %s)", turn.LabelRequest, r.Hash(by.name), r.WithoutResults().Hash(by.name))})
	if err != nil {
		return exchange{}, fmt.Errorf("looking for the message of an earlier request: %w", err)
	}
	var newest *v1beta1.ChatMessage
	for i := range list.Items {
		m := &list.Items[i]
		isCandidate := m.Spec.Role == v1beta1.RoleUser && isRecent(m, b.Now())
		if isCandidate && (newest == nil || newest.CreationTimestamp.Before(&m.CreationTimestamp)) {
			newest = m
		}
	}
	if newest == nil {
		return exchange{}, nil
	}
	return b.exchangeOf(ctx, newest)
}

// isRecent reports whether the turn of a User message runs, or has ended a moment ago.
func isRecent(m *v1beta1.ChatMessage, now time.Time) bool {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionReady)
	return ready == nil || ready.Status == metav1.ConditionUnknown ||
		now.Sub(ready.LastTransitionTime.Time) < retriedWithin
}

func (b *backend) exchangeOf(ctx context.Context, m *v1beta1.ChatMessage) (exchange, error) {
	chat, err := b.Client.Chats(m.Namespace).Get(ctx, m.Spec.ChatRef.Name)
	if err != nil {
		return exchange{}, fmt.Errorf("reading the chat of a message: %w", err)
	}
	return exchange{chat, m}, nil
}

// find finds the exchange that a message has begun.
func (b *backend) find(ctx context.Context, namespace, message string) (exchange, error) {
	m, err := b.Client.Messages(namespace).Get(ctx, message)
	if err != nil {
		return exchange{}, fmt.Errorf("reading a message: %w", err)
	}
	if m.Spec.Generation != nil || m.Spec.IsNote() {
		return exchange{}, missing("no request has created %s", message)
	}
	return b.exchangeOf(ctx, m)
}

// chat is the chat of a request, with the request's tools and instructions. It is created if there is none.
func (b *backend) chat(ctx context.Context, by caller, r *turn.Request) (chat *v1beta1.Chat, isNew bool, err error) {
	name := r.ChatName(by.name)
	if r.Previous != "" && r.Chat == "" {
		previous, err := b.find(ctx, r.Namespace, r.Previous)
		if err != nil {
			return nil, false, err
		}
		name = previous.chat.Name
	}
	mayExist := name != ""
	if !mayExist {
		name = "chat-" + randomSuffix()
	}
	if no := b.May(ctx, by.token, auth.Access{Namespace: r.Namespace, Chat: name}); no != nil {
		return nil, false, no
	}
	if mayExist {
		chat, err = b.Client.Chats(r.Namespace).Get(ctx, name)
		if err == nil {
			chat, err = b.adapt(ctx, r, chat)
			return chat, false, err
		} else if !apierrors.IsNotFound(err) {
			return nil, false, fmt.Errorf("reading the chat: %w", err)
		}
	}
	return b.create(ctx, r, name)
}

func (b *backend) create(ctx context.Context, r *turn.Request, name string) (chat *v1beta1.Chat, isNew bool,
	err error) {
	if n := r.News(); r.Previous != "" || len(n.Results) > 0 && !n.Resent {
		return nil, false, missing("chat %s does not exist", name)
	}
	if err := b.checkModel(ctx, r); err != nil {
		return nil, false, err
	}
	adapted, err := newChat(ctx, b.Client, r, name)
	if err != nil {
		return nil, false, err
	}
	chat, err = b.Client.Chats(r.Namespace).Create(ctx, adapted)
	isNew = err == nil
	if apierrors.IsAlreadyExists(err) {
		chat, err = b.Client.Chats(r.Namespace).Get(ctx, name)
	}
	if err != nil {
		return nil, false, fmt.Errorf("creating the chat: %w", err)
	}
	return chat, isNew, nil
}

// adapt gives a chat the tools and instructions of a request.
func (b *backend) adapt(ctx context.Context, r *turn.Request, chat *v1beta1.Chat) (*v1beta1.Chat, error) {
	if err := b.checkModel(ctx, r); err != nil {
		return nil, err
	}
	if class, ok := strings.CutPrefix(r.Model, turn.ClassPrefix); ok && chat.Spec.ChatClassName != class {
		return nil, bad("chat %s is not of ChatClass %s: the class of a chat is chosen when it is created", chat.Name, class)
	}
	for range maxConflicts {
		change := r.Change(chat)
		if change == nil {
			return chat, nil
		}
		changed, err := b.Client.Chats(chat.Namespace).MergePatch(ctx, chat.Name, change)
		if err == nil {
			return changed, nil
		} else if !apierrors.IsConflict(err) {
			return nil, fmt.Errorf("changing the chat: %w", err)
		}
		if chat, err = b.Client.Chats(chat.Namespace).Get(ctx, chat.Name); err != nil {
			return nil, fmt.Errorf("reading the chat: %w", err)
		}
	}
	return nil, conflict("chat %s is changed all the time, try again", chat.Name)
}

// sendAll creates the messages of a request, or finds them: results of calls have one of their own. It returns the one
// that is answered.
func (b *backend) sendAll(ctx context.Context, by caller, r *turn.Request, chat *v1beta1.Chat) (*v1beta1.ChatMessage,
	error) {
	message, err := b.send(ctx, by, r, chat)
	if err == nil && message.Spec.Role == v1beta1.RoleTool && len(r.News().Parts) > 0 {
		return b.send(ctx, by, r.WithoutResults(), chat)
	}
	return message, err
}

// send creates the message of a request, or finds it. A request without a key begins another turn if those of equal
// requests have failed: its message has their name, and a number.
func (b *backend) send(ctx context.Context, by caller, r *turn.Request, chat *v1beta1.Chat) (*v1beta1.ChatMessage,
	error) {
	name, hash := r.MessageName(by.name, chat.Name), r.Hash(by.name)
	if name == "" {
		name = chat.Name + "-" + randomSuffix()
	}
	message := r.Message(chat, name, hash)
	if found, err := b.checkNew(ctx, r, chat, message); err != nil || found != nil {
		return found, err
	}
	for number := 2; ; number++ {
		m, err := b.createOrFind(ctx, message)
		if err != nil || r.Key != "" || !hasFailed(chat, m) || number > maxRepeats {
			return m, err
		}
		message.Name = fmt.Sprintf("%s-%d", name, number)
	}
}

// createOrFind creates a message, or finds the one that an equal request has created.
func (b *backend) createOrFind(ctx context.Context, message *v1beta1.ChatMessage) (*v1beta1.ChatMessage, error) {
	m, err := b.Client.Messages(message.Namespace).Create(ctx, message)
	if apierrors.IsAlreadyExists(err) {
		found, err := b.findEqual(ctx, message)
		if err == nil && found == nil {
			err = conflict("message %s came and went, try again", message.Name)
		}
		return found, err
	}
	if err != nil {
		return nil, fmt.Errorf("creating the message: %w", err)
	}
	return m, nil
}

// hasFailed reports whether the turn of a User message has ended without an answer. The message may say so late.
func hasFailed(chat *v1beta1.Chat, m *v1beta1.ChatMessage) bool {
	if m.Spec.Role != v1beta1.RoleUser {
		return false
	}
	if t := chat.Status.Turn; t != nil && t.Message == m.Name && history.Is(history.RecordedBy(chat, m.Name), m) {
		return t.Result == v1beta1.TurnFailed || t.Result == v1beta1.TurnInterrupted
	}
	return meta.IsStatusConditionFalse(m.Status.Conditions, v1beta1.ConditionReady)
}

// checkNew checks the results of a request. If an equal request has created their message, that is returned.
func (b *backend) checkNew(ctx context.Context, r *turn.Request, chat *v1beta1.Chat, message *v1beta1.ChatMessage) (
	*v1beta1.ChatMessage, error) {
	n := r.News()
	if len(n.Results) == 0 || r.BringsHistory(chat) {
		return nil, nil
	}
	if found, err := b.findEqual(ctx, message); err != nil || found != nil {
		return found, err
	}
	if err := checkResults(chat, n.ResultsFor(chat)); err != nil {
		return nil, err
	}
	return nil, b.checkSettings(ctx, r, chat, message)
}

// checkSettings checks that a request with results of calls has no other settings than their turn, and marks their
// message if the answer is JSON. A message next to results begins a turn with settings of its own.
func (b *backend) checkSettings(ctx context.Context, r *turn.Request, chat *v1beta1.Chat,
	results *v1beta1.ChatMessage) error {
	began := &v1beta1.ChatMessage{}
	if t := chat.Status.Turn; t != nil {
		m, err := b.Client.Messages(chat.Namespace).Get(ctx, t.Message)
		switch {
		case err == nil:
			began = m
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("reading the message that began the turn: %w", err)
		}
	}
	if turn.OutputOf(chat, began) != nil {
		metav1.SetMetaDataAnnotation(&results.ObjectMeta, turn.AnnotationOutput, "true")
	}
	if len(r.News().Parts) > 0 {
		return nil
	}
	return r.Continue(chat, began)
}

// findEqual finds the message of that name if an equal request has created it, and nil if there is none.
func (b *backend) findEqual(ctx context.Context, message *v1beta1.ChatMessage) (*v1beta1.ChatMessage, error) {
	m, err := b.Client.Messages(message.Namespace).Get(ctx, message.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the message of an earlier request: %w", err)
	case m.Spec.ChatRef.Name != message.Spec.ChatRef.Name,
		m.Labels[turn.LabelRequest] != message.Labels[turn.LabelRequest]:
		return nil, conflict("another request has created message %s: use another Idempotency-Key", message.Name)
	}
	return m, nil
}

// checkResults checks that results are those of all pending calls of a chat.
func checkResults(chat *v1beta1.Chat, results []v1beta1.ToolResult) error {
	pending := turn.PendingCalls(chat)
	if len(pending) == 0 {
		return conflict("chat %s has no pending tool calls: send a message to continue", chat.Name)
	}
	ids := map[string]bool{}
	for i := range results {
		ids[results[i].ID] = true
	}
	for _, id := range pending {
		if !ids[id] {
			return bad("call %s has no result, and all that wait must be answered at once", turn.CallID(id, chat.Name))
		}
		delete(ids, id)
	}
	for id := range ids {
		return bad("no call %s of chat %s waits for a result", id, chat.Name)
	}
	return nil
}

func wrapped(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

func randomSuffix() string { return strings.ToLower(rand.Text()[:suffixLength]) }

func bad(format string, args ...any) error {
	return refused(http.StatusBadRequest, refusal.BadRequest, format, args...)
}

func missing(format string, args ...any) error {
	return refused(http.StatusNotFound, refusal.NotFound, format, args...)
}

func conflict(format string, args ...any) error {
	return refused(http.StatusConflict, refusal.Conflict, format, args...)
}

func refused(status int, reason, format string, args ...any) error {
	return &refusal.Error{Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
