// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conduct does at the API server what package turn says of a request, with the caller's own token, and listens
// to the chat for the caller. It keeps nothing: what a request has created says by its name and labels whose it is.
package conduct

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/internal/kube/apiclient"
)

const (
	// retriedWithin is how old a message is at most that a client may mean when it makes its request again.
	retriedWithin = 15 * time.Minute
	// nameLength is how many characters a name has that is made up, besides what it begins with.
	nameLength = 10
	// conflicts is how often a change is tried again that somebody else was faster with.
	conflicts = 5
)

// Follow is a chat to follow for a caller.
type Follow struct {
	// Token of the caller, and Access, the chat.
	Token  string
	Access auth.Access
	// From is where in the chat's story it begins.
	From func(chat *v1alpha1.Chat) follow.Position
	// Send takes an event. An error ends it.
	Send func(stream.Event) error
	// Alive is called every 15 seconds. An error ends it.
	Alive func() error
}

// Options of a conductor. All are required.
type Options struct {
	// Client asks the API server with the token of the context: see rest.NewClient.
	Client *apiclient.Client
	// May is why somebody may not listen to a chat; nil if he may.
	May func(ctx context.Context, token string, access auth.Access) *refusal.Error
	// Follow follows a chat until Send or Alive fail, the right to listen ends, or ctx is done, and returns why.
	Follow func(ctx context.Context, f Follow) error
	// Now returns the current time.
	Now func() time.Time
}

// Conductor conducts turns.
type Conductor struct{ options Options }

// New makes a conductor.
func New(o Options) *Conductor { return &Conductor{o} }

// Caller is who asks.
type Caller struct {
	// Token is shown to the API server.
	Token string
	// Name tells callers apart, in names of what they create. It gives no right.
	Name string
}

// Begun is a turn that a request has begun.
type Begun struct {
	Chat    *v1alpha1.Chat
	Message *v1alpha1.ChatMessage
}

// Begin creates what a request asks for, or finds what it has created before.
func (c *Conductor) Begin(ctx context.Context, by Caller, r *turn.Request) (Begun, error) {
	n := r.News()
	if len(n.Parts) == 0 && len(n.Results) == 0 {
		return Begun{}, bad("nothing follows the last reply: say something, or bring the results of calls")
	}
	if r.Retried {
		if found, err := c.again(ctx, r, r.Hash(by.Name)); err != nil || found.Message != nil {
			return found, err
		}
	}
	chat, err := c.chat(ctx, by, r, n)
	if err != nil {
		return Begun{}, err
	}
	message, err := c.sayAll(ctx, by, r, n, chat)
	return Begun{Chat: chat, Message: message}, err
}

// sayAll creates what a request says: results, and behind them what is said besides.
func (c *Conductor) sayAll(ctx context.Context, by Caller, r *turn.Request, n turn.News, chat *v1alpha1.Chat) (
	*v1alpha1.ChatMessage, error) {
	message, err := c.say(ctx, by, r, n, chat)
	if err != nil || len(n.Results) == 0 || len(n.Parts) == 0 || r.BringsHistory(chat) {
		return message, err
	}
	behind := r.Behind()
	return c.say(ctx, by, behind, behind.News(), chat)
}

// again finds the message that the same request has created a moment ago.
func (c *Conductor) again(ctx context.Context, r *turn.Request, hash string) (Begun, error) {
	list, err := c.options.Client.Messages(r.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: turn.LabelRequest + "=" + hash, Limit: 100})
	if err != nil {
		return Begun{}, fmt.Errorf("looking for the message of an earlier request: %w", err)
	}
	var newest *v1alpha1.ChatMessage
	for i := range list.Items {
		m := &list.Items[i]
		young := c.options.Now().Sub(m.CreationTimestamp.Time) < retriedWithin
		if young && (newest == nil || newest.CreationTimestamp.Before(&m.CreationTimestamp)) {
			newest = m
		}
	}
	if newest == nil {
		return Begun{}, nil
	}
	return c.of(ctx, newest)
}

func (c *Conductor) of(ctx context.Context, m *v1alpha1.ChatMessage) (Begun, error) {
	chat, err := c.options.Client.Chats(m.Namespace).Get(ctx, m.Spec.ChatRef.Name)
	if err != nil {
		return Begun{}, fmt.Errorf("reading the chat of a message: %w", err)
	}
	return Begun{Chat: chat, Message: m}, nil
}

// Find finds the turn that a message has begun.
func (c *Conductor) Find(ctx context.Context, namespace, message string) (Begun, error) {
	m, err := c.options.Client.Messages(namespace).Get(ctx, message)
	if err != nil {
		return Begun{}, fmt.Errorf("reading a message: %w", err)
	}
	if m.Spec.Generation != nil || m.Spec.IsNote() {
		return Begun{}, missing("no request has created %s", message)
	}
	return c.of(ctx, m)
}

// chat is the chat that a request goes on with, as it asks for it; one is created if there is none.
func (c *Conductor) chat(ctx context.Context, by Caller, r *turn.Request, n turn.News) (*v1alpha1.Chat, error) {
	name := r.ChatName(by.Name)
	if r.Previous != "" && r.Chat == "" {
		previous, err := c.Find(ctx, r.Namespace, r.Previous)
		if err != nil {
			return nil, err
		}
		name = previous.Chat.Name
	}
	given := name != ""
	if !given {
		name = "chat-" + randomName()
	}
	if no := c.options.May(ctx, by.Token, auth.Access{Namespace: r.Namespace, Chat: name}); no != nil {
		return nil, no
	}
	if given {
		chat, err := c.options.Client.Chats(r.Namespace).Get(ctx, name)
		if err == nil {
			return c.adapt(ctx, r, chat)
		} else if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading the chat: %w", err)
		}
	}
	return c.create(ctx, r, n, name)
}

func (c *Conductor) create(ctx context.Context, r *turn.Request, n turn.News, name string) (*v1alpha1.Chat, error) {
	if r.Previous != "" || len(n.Results) > 0 && !n.Resent {
		return nil, missing("chat %s does not exist", name)
	}
	if err := c.model(ctx, r); err != nil {
		return nil, err
	}
	chat, err := c.options.Client.Chats(r.Namespace).Create(ctx, r.NewChat(name))
	if apierrors.IsAlreadyExists(err) {
		chat, err = c.options.Client.Chats(r.Namespace).Get(ctx, name)
	}
	if err != nil {
		return nil, fmt.Errorf("creating the chat: %w", err)
	}
	return chat, nil
}

// adapt gives a chat the tools and instructions of a request.
func (c *Conductor) adapt(ctx context.Context, r *turn.Request, chat *v1alpha1.Chat) (*v1alpha1.Chat, error) {
	if err := c.model(ctx, r); err != nil {
		return nil, err
	}
	if class, ok := strings.CutPrefix(r.Model, turn.ClassPrefix); ok && chat.Spec.ChatClassName != class {
		return nil, bad("chat %s is not of ChatClass %s: the class of a chat is chosen when it is created", chat.Name, class)
	}
	for range conflicts {
		change := r.Change(chat)
		if change == nil {
			return chat, nil
		}
		changed, err := c.options.Client.Chats(chat.Namespace).MergePatch(ctx, chat.Name, change)
		if err == nil {
			return changed, nil
		} else if !apierrors.IsConflict(err) {
			return nil, fmt.Errorf("changing the chat: %w", err)
		}
		if chat, err = c.options.Client.Chats(chat.Namespace).Get(ctx, chat.Name); err != nil {
			return nil, fmt.Errorf("reading the chat: %w", err)
		}
	}
	return nil, conflict("chat %s is changed all the time, try again", chat.Name)
}

// say creates the message of a request.
func (c *Conductor) say(ctx context.Context, by Caller, r *turn.Request, n turn.News, chat *v1alpha1.Chat) (
	*v1alpha1.ChatMessage, error) {
	name, hash := r.MessageName(by.Name, chat.Name), r.Hash(by.Name)
	if name == "" {
		name = chat.Name + "-" + randomName()
	}
	message := r.Message(chat, name, hash)
	if len(n.Results) > 0 && !r.BringsHistory(chat) {
		if found, err := c.taken(ctx, r, name, hash, chat); err != nil || found != nil {
			return found, err
		}
		if err := answers(chat, n.Results); err != nil {
			return nil, err
		}
		if err := c.continues(ctx, r, n, chat, message); err != nil {
			return nil, err
		}
	}
	return c.createMessage(ctx, r, message, chat)
}

// continues checks that a request with results of calls asks for no other settings than their turn has, and notes on
// their message if the answer is JSON. What is said besides results begins a turn with settings of its own.
func (c *Conductor) continues(ctx context.Context, r *turn.Request, n turn.News, chat *v1alpha1.Chat,
	results *v1alpha1.ChatMessage) error {
	began := &v1alpha1.ChatMessage{}
	if t := chat.Status.Turn; t != nil {
		m, err := c.options.Client.Messages(chat.Namespace).Get(ctx, t.Message)
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
	if len(n.Parts) > 0 {
		return nil
	}
	return r.Continue(chat, began)
}

func (c *Conductor) createMessage(ctx context.Context, r *turn.Request, message *v1alpha1.ChatMessage,
	chat *v1alpha1.Chat) (*v1alpha1.ChatMessage, error) {
	name, hash := message.Name, message.Labels[turn.LabelRequest]
	m, err := c.options.Client.Messages(r.Namespace).Create(ctx, message)
	if apierrors.IsAlreadyExists(err) {
		found, err := c.taken(ctx, r, name, hash, chat)
		if err == nil && found == nil {
			err = conflict("message %s came and went, try again", name)
		}
		return found, err
	}
	if err != nil {
		return nil, fmt.Errorf("creating the message: %w", err)
	}
	return m, nil
}

// taken is the message of that name if the same request has created it, and nil if there is none.
func (c *Conductor) taken(ctx context.Context, r *turn.Request, name, hash string, chat *v1alpha1.Chat) (
	*v1alpha1.ChatMessage, error) {
	m, err := c.options.Client.Messages(r.Namespace).Get(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the message of an earlier request: %w", err)
	case m.Spec.ChatRef.Name != chat.Name || m.Labels[turn.LabelRequest] != hash:
		return nil, conflict("another request has created message %s: use another Idempotency-Key", name)
	}
	return m, nil
}

// answers is what is wrong with results of a chat's calls.
func answers(chat *v1alpha1.Chat, results []v1alpha1.ToolResult) error {
	owed := turn.Owed(chat)
	if len(owed) == 0 {
		return conflict("chat %s has no pending tool calls: send a message to continue", chat.Name)
	}
	given := map[string]bool{}
	for i := range results {
		given[results[i].ID] = true
	}
	for _, id := range owed {
		if !given[id] {
			return bad("call %s has no result, and all that wait must be answered at once", turn.CallID(id, chat.Name))
		}
		delete(given, id)
	}
	for id := range given {
		return bad("no call %s of chat %s waits for a result", id, chat.Name)
	}
	return nil
}

func randomName() string { return strings.ToLower(rand.Text()[:nameLength]) }

func bad(format string, args ...any) error {
	return refused(http.StatusBadRequest, refusal.BadRequest, format, args...)
}

func missing(format string, args ...any) error {
	return refused(http.StatusNotFound, refusal.NotFound, format, args...)
}

func conflict(format string, args ...any) error {
	return refused(http.StatusConflict, string(metav1.StatusReasonConflict), format, args...)
}

func refused(status int, reason, format string, args ...any) error {
	return &refusal.Error{Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

var errOver = errors.New("the answer has ended")
