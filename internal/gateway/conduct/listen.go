// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conduct

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
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/internal/netguard/retry"
)

// Audience is told a turn. An error ends that.
type Audience struct {
	// Begin is called once, when the caller may listen and before anything else; nil: nobody waits for that.
	Begin func() error
	// Send takes what happens.
	Send func(turn.Event) error
	// Alive is called every 15 seconds; nil: nobody waits for that.
	Alive func() error
}

// Listen tells a turn to its end, from its beginning. One that a budget holds has failed for the caller, and is
// cancelled: it would be paid later, after the caller has left.
func (c *Conductor) Listen(ctx context.Context, by Caller, b Begun, to Audience) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	l := &listener{story: storyOf(b, to.Send), to: to}
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop(nil)
	if v1alpha1.MessageCommitted != b.Message.Status.State {
		watching.Go(func() { c.watch(ctx, b.Message, stop) })
	}
	err := c.options.Follow(ctx, followed(by, b, l.take, l.tick))
	if refused, ok := errors.AsType[*turnedAway](context.Cause(ctx)); ok && !l.story.Over() {
		return errors.Join(l.begin(), l.story.End(turn.End{Outcome: turn.Failed, Error: refused.why}))
	}
	if l.story.Held() {
		c.cancelHeld(ctx, b)
	}
	return over(err)
}

// cancelHeld cancels a turn whose answer has ended. If that fails, or the caller may not do it, the turn is answered
// after a raise, as its chat says.
func (c *Conductor) cancelHeld(ctx context.Context, b Begun) {
	if now, err := c.Find(ctx, b.Chat.Namespace, b.Message.Name); err == nil {
		_ = c.Cancel(ctx, now)
	}
}

// Look tells a turn as far as it has come, whole if it has ended, and says whether it has begun and ended.
func (c *Conductor) Look(ctx context.Context, by Caller, b Begun, send func(turn.Event) error) (begun, ended bool,
	err error) {
	if refused := refusedBy(b.Message); refused != nil {
		return false, true, send(turn.Event{Kind: turn.Ended, End: &turn.End{Outcome: turn.Failed, Error: refused.why}})
	}
	story := storyOf(b, send)
	take := func(e stream.Event) error {
		if err := story.Tell(e); err != nil {
			return err
		}
		if story.Over() || e.Name == stream.EventStatus && settled(story) {
			return errOver
		}
		return nil
	}
	err = over(c.options.Follow(ctx, followed(by, b, take, func() error { return nil })))
	return story.Begun(), story.Over(), err
}

// settled reports whether nothing follows a status that says more of a turn: an error does, and what it waits for.
func settled(s *turn.Story) bool {
	p := s.Present()
	return !s.Begun() || p.Result != v1alpha1.TurnFailed && p.Phase != v1alpha1.ChatRequiresAction
}

func storyOf(b Begun, send func(turn.Event) error) *turn.Story {
	s := &turn.Story{Message: b.Message.Name, ClientTools: turn.ClientTools(b.Chat), Send: send,
		JSON: turn.OutputOf(b.Chat, b.Message) != nil}
	ready := meta.FindStatusCondition(b.Message.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.Status != metav1.ConditionUnknown && b.Message.Spec.Role == v1alpha1.RoleUser {
		s.Ready = ready
	}
	return s
}

func followed(by Caller, b Begun, send func(stream.Event) error, alive func() error) Follow {
	return Follow{Token: by.Token, Access: auth.Access{Namespace: b.Chat.Namespace, Chat: b.Chat.Name},
		From: func(chat *v1alpha1.Chat) follow.Position { return follow.Before(chat, b.Message) },
		Send: send, Alive: alive}
}

func over(err error) error {
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

// listener takes the events of a chat.
type listener struct {
	story *turn.Story
	to    Audience
	begun bool
	ticks int
}

func (l *listener) begin() error {
	if l.begun || l.to.Begin == nil {
		return nil
	}
	l.begun = true
	return l.to.Begin()
}

func (l *listener) take(e stream.Event) error {
	if err := l.begin(); err != nil {
		return err
	}
	if err := l.story.Tell(e); err != nil {
		return err
	}
	if l.story.Over() {
		return errOver
	}
	return nil
}

// tick ends a turn that cannot begin because somebody has to mend something first: what the chat says right after the
// message was created may be about an earlier one.
func (l *listener) tick() error {
	const patience = 2
	l.ticks++
	if p := l.story.Present(); l.ticks >= patience && !l.story.Begun() && p != nil &&
		(p.Ready == metav1.ConditionFalse || p.Reason == string(v1alpha1.ReasonArchived)) {
		if err := l.story.End(turn.End{Outcome: turn.Failed,
			Error: &stream.Error{Reason: v1alpha1.ErrorReason(p.Reason), Message: p.Message}}); err != nil {
			return err
		}
		return errOver
	}
	if l.to.Alive == nil {
		return nil
	}
	return l.to.Alive()
}

// turnedAway means that a chat does not take a message.
type turnedAway struct{ why *stream.Error }

func (t *turnedAway) Error() string { return t.why.Message }

// refusedBy is why a message will never be answered; nil if it may be.
func refusedBy(m *v1alpha1.ChatMessage) *turnedAway {
	if m.Status.State != v1alpha1.MessageRejected && m.Status.State != v1alpha1.MessageSuperseded {
		return nil
	}
	why := &stream.Error{Reason: v1alpha1.ErrorReason(m.Status.State), Message: "the chat does not take the message"}
	if ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		why.Reason, why.Message = v1alpha1.ErrorReason(ready.Reason), ready.Message
	}
	return &turnedAway{why}
}

// watch calls stop when the message is refused or deleted. A watch that the API server ends is started again.
func (c *Conductor) watch(ctx context.Context, m *v1alpha1.ChatMessage, stop context.CancelCauseFunc) {
	for pauses := retry.APIServer.Start(); ctx.Err() == nil; {
		events, err := c.options.Client.Messages(m.Namespace).Watch(ctx,
			metav1.ListOptions{FieldSelector: "metadata.name=" + m.Name})
		if apierrors.IsForbidden(err) {
			return // Who may not watch is told of what is committed alone.
		}
		if err == nil && attend(events, m, stop) {
			return
		}
		_ = pauses.Wait(ctx, err) // The loop looks at ctx.
	}
}

// attend reads a watch until what becomes of the message is certain.
func attend(events watch.Interface, m *v1alpha1.ChatMessage, stop context.CancelCauseFunc) (certain bool) {
	defer events.Stop()
	for e := range events.ResultChan() {
		now, ok := e.Object.(*v1alpha1.ChatMessage)
		switch {
		case !ok:
			return false
		case e.Type == watch.Deleted:
			stop(&turnedAway{&stream.Error{Reason: turn.MessageDeleted, Message: fmt.Sprintf("message %s was deleted", m.Name)}})
			return true
		case now.Status.State == v1alpha1.MessageCommitted:
			return true
		}
		if refused := refusedBy(now); refused != nil {
			stop(refused)
			return true
		}
	}
	return false
}
