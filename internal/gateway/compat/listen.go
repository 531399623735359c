// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/internal/netguard/retry"
)

// errOver ends the following of a chat when the answer has ended.
var errOver = errors.New("the answer has ended")

// listener receives the events of a chat, and those of an answer in it. An error of its functions ends the answer.
type listener struct {
	// begin is called once, when the caller is authorized and before the first event; nil: it is not needed.
	begin func() error
	// send sends an event of the answer.
	send func(turn.Event) error
	// alive is called every 15 seconds; nil: it is not needed.
	alive func() error
	// live is whether the answer is sent while it is generated. Otherwise an attempt may be made again, and differ.
	live bool

	story *turn.Story
	begun bool
	ticks int
}

// listen sends an answer from its beginning to its end. A turn that a budget holds has failed for the caller, and is
// cancelled: it would be paid later, after the caller has left.
func (b *backend) listen(ctx context.Context, by caller, e exchange, l *listener) error {
	ctx, stop := context.WithCancelCause(ctx)
	l.story = storyOf(e, l.send)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop(nil)
	if e.message.Status.State != v1beta1.MessageCommitted {
		watching.Go(func() { b.watch(ctx, e.message, stop) })
	}
	err := b.follow(ctx, by, e, Follow{Live: l.live, Send: l.take, Alive: l.tick})
	if rejected, ok := errors.AsType[*rejection](context.Cause(ctx)); ok && !l.story.IsOver() {
		return errors.Join(l.start(), l.story.End(turn.End{Outcome: turn.Failed, Error: rejected.why}))
	}
	if l.story.IsHeld() {
		// If it cannot be cancelled, it is answered after a raise of the budget, as its chat reports.
		if now, err := b.find(ctx, e.chat.Namespace, e.message.Name); err == nil {
			_, _ = b.cancel(ctx, now)
		}
	}
	return err
}

// look sends an answer as it is now, and reports whether its turn has begun.
func (b *backend) look(ctx context.Context, by caller, e exchange, send func(turn.Event) error) (begun bool,
	err error) {
	if rejected := rejectionOf(e.message); rejected != nil {
		return false, send(turn.Event{Kind: turn.AnswerEnd, End: &turn.End{Outcome: turn.Failed, Error: rejected.why}})
	}
	story := storyOf(e, send)
	take := func(event stream.Event) error {
		if err := story.Take(event); err != nil {
			return err
		}
		isLast := event.Name == stream.EventRequiresAction || event.Name == stream.EventStatus && isSettled(story)
		if story.IsOver() || isLast {
			return errOver
		}
		return nil
	}
	err = b.follow(ctx, by, e, Follow{Send: take, Alive: func() error { return nil }})
	return story.IsCommitted(), err
}

// isSettled reports whether no later event says more about the turn. An error follows the status of a failed turn, and
// the required action that of a waiting one.
func isSettled(s *turn.Story) bool {
	status := s.Status()
	return !s.IsCommitted() || status.Result != v1beta1.TurnFailed && status.Phase != v1beta1.ChatRequiresAction
}

func storyOf(e exchange, send func(turn.Event) error) *turn.Story {
	s := &turn.Story{Message: e.message.Name, ClientTools: turn.ClientTools(e.chat), Send: send,
		JSON: turn.OutputOf(e.chat, e.message) != nil}
	if e.message.Status.State == v1beta1.MessageCommitted {
		s.Version = e.message.Status.HistoryVersion
	}
	ready := meta.FindStatusCondition(e.message.Status.Conditions, v1beta1.ConditionReady)
	if ready != nil && ready.Status != metav1.ConditionUnknown && e.message.Spec.Role == v1beta1.RoleUser {
		s.Ready = ready
	}
	return s
}

// follow follows the chat of an exchange until the answer has ended.
func (b *backend) follow(ctx context.Context, by caller, e exchange, f Follow) error {
	f.Token, f.Access = by.token, auth.Access{Namespace: e.chat.Namespace, Chat: e.chat.Name}
	f.From = func(chat *v1beta1.Chat) follow.Position { return follow.Before(chat, e.message) }
	err := b.Follow(ctx, f)
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

func (l *listener) start() error {
	if l.begun || l.begin == nil {
		return nil
	}
	l.begun = true
	return l.begin()
}

func (l *listener) take(e stream.Event) error {
	if err := l.start(); err != nil {
		return err
	}
	if err := l.story.Take(e); err != nil {
		return err
	}
	if l.story.IsOver() {
		return errOver
	}
	return nil
}

// tick ends a turn that cannot begin before someone fixes the chat. The status right after the creation of the message
// may describe an earlier turn.
func (l *listener) tick() error {
	const patience = 2
	l.ticks++
	if s := l.story.Status(); l.ticks >= patience && !l.story.IsCommitted() && s != nil &&
		(s.Ready == metav1.ConditionFalse || s.Reason == string(v1beta1.ReasonArchived)) {
		why := &stream.Error{Reason: v1beta1.ErrorReason(s.Reason), Message: s.Message}
		if err := l.story.End(turn.End{Outcome: turn.Failed, Error: why}); err != nil {
			return err
		}
		return errOver
	}
	if l.alive == nil {
		return nil
	}
	return l.alive()
}

// rejection means that a chat does not accept a message.
type rejection struct{ why *stream.Error }

func (r *rejection) Error() string { return r.why.Message }

// rejectionOf is why a message will never be answered; nil if it may be.
func rejectionOf(m *v1beta1.ChatMessage) *rejection {
	if m.Status.State != v1beta1.MessageRejected && m.Status.State != v1beta1.MessageSuperseded {
		return nil
	}
	why := &stream.Error{Reason: v1beta1.ErrorReason(m.Status.State), Message: "the chat does not take the message"}
	if ready := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionReady); ready != nil {
		why.Reason, why.Message = v1beta1.ErrorReason(ready.Reason), ready.Message
	}
	return &rejection{why}
}

// watch calls stop when the message is rejected or deleted. A watch that the API server ends is started again.
func (b *backend) watch(ctx context.Context, m *v1beta1.ChatMessage, stop context.CancelCauseFunc) {
	for pauses := retry.APIServer.Start(); ctx.Err() == nil; {
		events, err := b.Client.Messages(m.Namespace).Watch(ctx,
			metav1.ListOptions{FieldSelector: "metadata.name=" + m.Name})
		if apierrors.IsForbidden(err) {
			return // Without the permission to watch, the caller receives only what is committed.
		}
		if err == nil && readWatch(events, m, stop) {
			return
		}
		_ = pauses.Wait(ctx, err) // The loop checks ctx.
	}
}

// readWatch reads a watch, and reports whether the message is committed, rejected or deleted.
func readWatch(events watch.Interface, m *v1beta1.ChatMessage, stop context.CancelCauseFunc) (final bool) {
	defer events.Stop()
	for e := range events.ResultChan() {
		now, ok := e.Object.(*v1beta1.ChatMessage)
		switch {
		case !ok:
			return false
		case e.Type == watch.Deleted:
			stop(&rejection{&stream.Error{Reason: turn.MessageDeleted, Message: fmt.Sprintf("message %s was deleted", m.Name)}})
			return true
		case now.Status.State == v1beta1.MessageCommitted:
			return true
		}
		if rejected := rejectionOf(now); rejected != nil {
			stop(rejected)
			return true
		}
	}
	return false
}
