// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster reads and watches the objects of chats, and finds ways to the gateway.
package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/text/compose"
)

// Objects are Parley's objects in one namespace; in all if that is empty.
type Objects struct {
	Namespace string
	Client    *apiclient.Client
}

// Messages returns the ChatMessages.
func (o Objects) Messages() apiclient.Resource[v1beta1.ChatMessage, v1beta1.ChatMessageList] {
	return o.Client.Messages(o.Namespace)
}

// Chats returns the Chats.
func (o Objects) Chats() apiclient.Resource[v1beta1.Chat, v1beta1.ChatList] {
	return o.Client.Chats(o.Namespace)
}

// Approvals returns the ToolApprovals.
func (o Objects) Approvals() apiclient.Resource[v1beta1.ToolApproval, v1beta1.ToolApprovalList] {
	return o.Client.Approvals(o.Namespace)
}

// Chat reads a chat. If there is none, the error lists those that there are.
func (o Objects) Chat(ctx context.Context, name string) (*v1beta1.Chat, error) {
	chat, err := o.Chats().Get(ctx, name)
	if !apierrors.IsNotFound(err) {
		return chat, err
	}
	there := "there is none"
	if list, err := o.Chats().List(ctx, metav1.ListOptions{Limit: 10}); err == nil && len(list.Items) > 0 {
		names := make([]string, 0, len(list.Items))
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		there = "there is " + strings.Join(names, ", ")
	}
	return nil, cli.NotFoundError(fmt.Sprintf("namespace %s has no chat %s: %s", o.Namespace, name, there))
}

// CheckChat fails as Chat does.
func (o Objects) CheckChat(ctx context.Context, name string) error {
	_, err := o.Chat(ctx, name)
	return err
}

// Message reads a message of a chat. A message of another chat is not found.
func (o Objects) Message(ctx context.Context, chat, name string) (*v1beta1.ChatMessage, error) {
	if err := o.CheckChat(ctx, chat); err != nil {
		return nil, err
	}
	m, err := o.Messages().Get(ctx, name)
	if apierrors.IsNotFound(err) || err == nil && m.Spec.ChatRef.Name != chat {
		return nil, cli.NotFoundError(fmt.Sprintf("chat %s has no message %s", chat, name))
	}
	if err != nil {
		return nil, fmt.Errorf("reading message %s: %w", name, err)
	}
	return m, nil
}

// CreateMessage creates a message of a chat, with a generated name.
func (o Objects) CreateMessage(ctx context.Context, chat string, spec v1beta1.ChatMessageSpec) (*v1beta1.ChatMessage,
	error) {
	m, err := o.Messages().Create(ctx, compose.Message(o.Namespace, chat, "", spec))
	if err != nil {
		return nil, fmt.Errorf("creating the message: %w", err)
	}
	return m, nil
}

// Request makes a request of a chat, by an annotation.
func (o Objects) Request(ctx context.Context, chat string, kind v1beta1.RequestKind, token string) error {
	if _, err := o.Chats().MergePatch(ctx, chat, compose.Request(kind, token)); err != nil {
		return fmt.Errorf("annotating chat %s: %w", chat, err)
	}
	return nil
}

// AwaitVerdict waits until the outcome of a message is final. It calls lost as Await does.
func (o Objects) AwaitVerdict(ctx context.Context, name string, lost func(error)) (v Verdict) {
	v.Err = Await(ctx, o.Messages().Watch, name, lost, func(m *v1beta1.ChatMessage) (bool, error) {
		v.Committed = m.Status.State == v1beta1.MessageCommitted
		return IsReady(m.Status.Conditions, func(string) {})
	})
	return v
}

// Verdict is the final outcome of a message.
type Verdict struct {
	// Committed is true for a message that has had a turn.
	Committed bool
	// Err is why it was not answered.
	Err error
}

const (
	listPage = 500
	// MessagePage is how many messages a page of a list has: each may have a MiB.
	MessagePage = 50
)

// Each calls take for each object of a list, which it reads in pages of options.Limit objects.
func Each[T, L any, P interface {
	*L
	runtime.Object
	GetContinue() string
}](ctx context.Context, options metav1.ListOptions, list func(context.Context, metav1.ListOptions) (*L, error),
	take func(*T)) error {
	for {
		page, err := list(ctx, options)
		if err != nil {
			return err
		}
		if err := meta.EachListItem(P(page), func(o runtime.Object) error {
			if item, ok := any(o).(*T); ok {
				take(item)
			}
			return nil
		}); err != nil {
			return fmt.Errorf("reading a list: %w", err)
		}
		if options.Continue = P(page).GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// InPages selects all objects of a list.
func InPages() metav1.ListOptions { return metav1.ListOptions{Limit: listPage} }

// MessagesOf selects the messages of a chat; those of all if it is empty.
func MessagesOf(chat string) metav1.ListOptions {
	options := metav1.ListOptions{Limit: MessagePage}
	if chat != "" {
		options.FieldSelector = "spec.chatRef.name=" + chat
	}
	return options
}

// ReconnectAfter is the pause before a watch that has ended is started again.
const ReconnectAfter = time.Second

// Watcher starts a watch on a kind of resource.
type Watcher func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)

// Await watches an object until done returns true or an error. It calls lost once the API server has been out of reach
// for a while.
func Await[T any](ctx context.Context, begin Watcher, name string, lost func(error),
	done func(*T) (bool, error)) error {
	for outage := (Outage{Report: lost}); ; {
		watching, failed := begin(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err := outage.Tolerate(failed); err != nil {
			return fmt.Errorf("watching %s: %w", name, err)
		}
		if failed == nil {
			if ended, err := awaitIn(watching, name, done); ended || err != nil {
				return err
			}
		}
		if err := retry.Sleep(ctx, ReconnectAfter); err != nil { // The API server ends watches now and then.
			return err
		}
	}
}

func awaitIn[T any](watching watch.Interface, name string, done func(*T) (bool, error)) (bool, error) {
	defer watching.Stop()
	for e := range watching.ResultChan() {
		object, ok := any(e.Object).(*T)
		if !ok {
			return false, nil
		}
		if e.Type == watch.Deleted {
			return true, cli.NotFoundError(name + " was deleted")
		}
		if ended, err := done(object); ended || err != nil {
			return true, err
		}
	}
	return false, nil
}

// IsReady reads the Ready condition: whether it is final, and the error if it is False. It notes why it is not final.
func IsReady(conditions []metav1.Condition, note func(string)) (final bool, err error) {
	switch ready := meta.FindStatusCondition(conditions, v1beta1.ConditionReady); {
	case ready == nil:
		return false, nil
	case ready.Status == metav1.ConditionUnknown:
		note(ready.Reason + ": " + ready.Message)
		return false, nil
	case ready.Status == metav1.ConditionFalse:
		return true, cli.NotReadyError{Reason: ready.Reason, Message: ready.Message}
	}
	return true, nil
}
