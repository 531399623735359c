// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/plan"
)

// seen is all that one pass has read.
type seen struct {
	facts plan.Facts
	// configs are the namespace's ChatModelConfigs, as the cache shows them, or as they are when configsLive is true.
	configs     []v1alpha1.ChatModelConfig
	configsLive bool
	// orphan is true when the chat's parent has been deleted.
	orphan bool
	// results names the Tool messages of clients that have not been taken.
	results []string
	// applied names the ToolApprovals that count and do not say so yet.
	applied []string
	// lookAgain is when time alone may change the decision; zero: never.
	lookAgain time.Duration
}

// gather reads everything a decision needs. It returns nil when there is no chat to work on.
func (r *Reconciler) gather(ctx context.Context, req ctrl.Request) (*seen, error) {
	chat, err := r.readChat(ctx, req.NamespacedName)
	if err != nil || chat == nil {
		return nil, err
	}
	s := &seen{facts: plan.Facts{Chat: chat, Now: r.Now(), Suspended: chat.Spec.Suspend, Requests: plan.RequestsOf(chat)}}
	for _, read := range []func(context.Context, *seen) error{
		r.readModel, r.readFamily, r.readAttempt, r.readSummary, r.readChain, r.readQueue, r.readOpen, r.readAction, r.readSubChats, r.readCapacity,
		r.readNamedModels, r.readAdvisor,
	} {
		if err := read(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (r *Reconciler) readChat(ctx context.Context, key types.NamespacedName) (*v1alpha1.Chat, error) {
	reader := client.Reader(r.Client)
	if r.written.takeStale(key) {
		reader = r.Live
	}
	var chat v1alpha1.Chat
	err := reader.Get(ctx, key, &chat)
	if apierrors.IsNotFound(err) {
		r.written.forget(key)
		r.chains.forget(key)
		r.deleted.forget(key)
		r.Ledger.Book(key.String(), "")
		r.Gate.Leave(key)
		return nil, r.refuseApprovals(ctx, key)
	}
	if err != nil {
		return nil, fmt.Errorf("reading chat %s: %w", key, err)
	}
	newest := r.written.newest(&chat)
	if !newest.DeletionTimestamp.IsZero() || !chat.DeletionTimestamp.IsZero() {
		r.Ledger.Book(keyOf(newest).String(), "")
		r.Gate.Leave(key)
		return nil, nil
	}
	return newest, nil
}

// readAttempt reads the result of the attempt under way, and how its pod is.
func (r *Reconciler) readAttempt(ctx context.Context, s *seen) error {
	chat := s.facts.Chat
	if chat.Status.Generation == nil {
		return nil
	}
	result, err := r.message(ctx, r.Client, chat.Namespace, attempts.Of(chat.UID, &chat.Status).ResultName(chat.Name))
	if err != nil {
		return err
	}
	s.facts.Result, s.facts.Deleted = result, r.deleted.newest(keyOf(chat))
	return r.readPod(ctx, s)
}

// readQueue reads the queued messages. That the cache does not show one does not prove that it was deleted.
func (r *Reconciler) readQueue(ctx context.Context, s *seen) error {
	for _, queued := range s.facts.Chat.Status.Queue {
		for _, reader := range []client.Reader{r.Client, r.Live} {
			message, err := r.message(ctx, reader, s.facts.Chat.Namespace, queued.Name)
			if err != nil {
				return err
			}
			if message != nil {
				s.facts.Queued = append(s.facts.Queued, plan.MessageOf(message))
				break
			}
		}
	}
	return nil
}

// message reads a message; nil if there is none.
func (r *Reconciler) message(ctx context.Context, reader client.Reader, namespace, name string) (*v1alpha1.ChatMessage, error) {
	var m v1alpha1.ChatMessage
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &m)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading message %s: %w", name, err)
	}
	return &m, nil
}
