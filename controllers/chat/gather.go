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
	"parley.dev/parley/internal/chat/plan"
)

// scope is everything that one reconcile has read.
type scope struct {
	facts plan.Facts
	// configs are the namespace's ChatModelConfigs, as the cache shows them, or as they are when configsLive is true.
	configs     []v1alpha1.ChatModelConfig
	configsLive bool
	// podGone is true when the pod of the attempt under way does not exist any more.
	podGone bool
	// orphan is true when the chat's parent has been deleted.
	orphan bool
	// results names the Tool messages of clients that have not been taken.
	results []string
	// applied names the ToolApprovals that count and do not say so yet.
	applied []string
	// lookAgain is when time alone may change the decision; zero: never.
	lookAgain time.Duration
}

// gather reads everything a decision needs, and changes nothing. It returns nil when there is no chat to work on.
func (r *Reconciler) gather(ctx context.Context, req ctrl.Request) (*scope, error) {
	chat, err := r.readChat(ctx, req.NamespacedName)
	if err != nil || chat == nil {
		return nil, err
	}
	s := &scope{facts: plan.Facts{Chat: chat, Now: r.Now(), Suspended: chat.Spec.Suspend, Requests: plan.RequestsOf(chat)}}
	for _, read := range []func(context.Context, *scope) error{
		r.readModel,
		r.readFamily,  // Where the chat may not be, no model answers.
		r.readAttempt, // Its result is read before the summary of the turn that it may end.
		r.readSummary,
		r.readChain,
		r.readQueue,
		r.readOpen, // Clients' results are among the open messages.
		r.readResults,
		r.readApprovals,
		r.readSubChats,
		r.readAdvisor,
	} {
		if err := read(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// readChat reads the chat as it is after this process's own last write;
// nil if there is none, or if it is being deleted.
func (r *Reconciler) readChat(ctx context.Context, key types.NamespacedName) (*v1alpha1.Chat, error) {
	reader := client.Reader(r.Client)
	if r.written.takeStale(key) {
		reader = r.Live
	}
	var chat v1alpha1.Chat
	err := reader.Get(ctx, key, &chat)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading chat %s: %w", key, err)
	}
	newest := r.written.newest(&chat)
	if !newest.DeletionTimestamp.IsZero() || !chat.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return newest, nil
}

// message reads a message; nil if there is none.
func (r *Reconciler) message(ctx context.Context, reader client.Reader, namespace, name string) (*v1alpha1.ChatMessage,
	error) {
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
