// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/chat/tree"
)

// deletion is a chat that is being deleted and whose cost a budget above it counts.
type deletion struct {
	chat *v1beta1.Chat
	// payer is the name of the chat that is to count it; empty if there is none. Between are the UIDs of the chats between
	// the two: what the deletion of one of them counted, is counted.
	payer   string
	between []string
	// counts returns what the chat and those below it have cost, without the chats whose UIDs it is given.
	counts func(counted []string) []v1beta1.Cost
	// existing are the UIDs of the chats of the namespace.
	existing map[string]bool
}

// needsFinalizer reports whether the cost of a sub-chat would be forgotten with it, although a budget above counts it.
func needsFinalizer(s *scope) bool {
	return len(s.facts.BudgetsAbove) > 0 && !controllerutil.ContainsFinalizer(s.facts.Chat, v1beta1.FinalizerCost)
}

// keepUntilCounted gives the chat the finalizer, and looks at it again.
func (r *Reconciler) keepUntilCounted(ctx context.Context, chat *v1beta1.Chat) (ctrl.Result, error) {
	next := chat.DeepCopy()
	controllerutil.AddFinalizer(next, v1beta1.FinalizerCost)
	if err := r.actuator.patchFinalizers(ctx, chat, next); err != nil {
		return ctrl.Result{}, err
	}
	r.memory.written.put(next)
	r.gatherer.forgetShown(ctx, keyOf(next))
	return ctrl.Result{RequeueAfter: time.Nanosecond}, nil
}

// release lets a chat go that is being deleted, once its cost is counted where a budget above it needs that.
func (r *Reconciler) release(ctx context.Context, key types.NamespacedName) (ctrl.Result, error) {
	d, err := r.gatherer.family.readDeletion(ctx, key)
	if err != nil || d == nil {
		return ctrl.Result{}, err
	}
	if d.payer != "" {
		counted, err := r.actuator.countDeletion(ctx, d)
		if err != nil {
			return ctrl.Result{}, err
		}
		if counted == nil {
			return ctrl.Result{RequeueAfter: time.Second}, nil
		}
		r.memory.written.put(counted)
		r.gatherer.forgetShown(ctx, keyOf(counted))
	}
	next := d.chat.DeepCopy()
	controllerutil.RemoveFinalizer(next, v1beta1.FinalizerCost)
	return ctrl.Result{}, client.IgnoreNotFound(r.actuator.patchFinalizers(ctx, d.chat, next))
}

// readDeletion reads what a chat that is being deleted means for the budgets above; nil if it may go as it is.
func (r *familyReader) readDeletion(ctx context.Context, key types.NamespacedName) (*deletion, error) {
	var chat v1beta1.Chat
	if err := r.cache.Get(ctx, key, &chat); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	newest := r.written.newest(&chat)
	if newest.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(newest, v1beta1.FinalizerCost) {
		return nil, nil
	}
	var chats v1beta1.ChatList
	var classes v1beta1.ChatClassList
	for _, list := range []client.ObjectList{&chats, &classes} {
		if err := r.cache.List(ctx, list, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("reading the family of deleted chat %s: %w", key, err)
		}
	}
	r.written.overlay(key.Namespace, chats.Items)
	members := tree.Of(chats.Items)
	d := &deletion{chat: newest, existing: map[string]bool{}, counts: func(counted []string) []v1beta1.Cost {
		return members.CostOfDeletion(newest, counted)
	}}
	for i := range chats.Items {
		d.existing[string(chats.Items[i].UID)] = true
	}
	above := members.AncestorsAlive(newest)
	for i := range above {
		above[i] = chatclass.Of(above[i], classes.Items)
	}
	if payer, between := tree.Payer(above); payer != nil {
		d.payer = payer.Name
		for _, chat := range between {
			d.between = append(d.between, string(chat.UID))
		}
	}
	return d, nil
}

// countDeletion adds the cost of the deleted chat to the status of the chat whose budget counts it, which it returns.
// It does so once, however often it is called: not for a chat that is gone, which an old cache may still show, nor for
// one whose deletion, or that of a chat between the two, is counted. It returns nil if too many deletions are under
// way.
func (a *actuator) countDeletion(ctx context.Context, d *deletion) (*v1beta1.Chat, error) {
	var payer, chat v1beta1.Chat
	key := types.NamespacedName{Namespace: d.chat.Namespace, Name: d.payer}
	if err := a.live.Get(ctx, key, &payer); err != nil {
		return nil, fmt.Errorf("reading chat %s, whose budget counts deleted chat %s: %w", key, d.chat.Name, err)
	}
	err := a.live.Get(ctx, keyOf(d.chat), &chat)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading deleted chat %s: %w", keyOf(d.chat), err)
	}
	in, uid := &payer.Status.Internal, string(d.chat.UID)
	counted := func(uid string) bool { return slices.Contains(in.CountedDeletions, uid) }
	isGone := apierrors.IsNotFound(err) || chat.UID != d.chat.UID
	if isGone || counted(uid) || slices.ContainsFunc(d.between, counted) {
		return &payer, nil
	}
	costs := d.counts(in.CountedDeletions)
	in.CountedDeletions = slices.DeleteFunc(in.CountedDeletions, func(uid string) bool { return !d.existing[uid] })
	if len(in.CountedDeletions) >= v1beta1.MaxCountedDeletions {
		return nil, nil
	}
	in.CountedDeletions = append(in.CountedDeletions, uid)
	payer.Status.DeletedCost = cost.Sum(payer.Status.DeletedCost, costs)
	if err := a.client.Status().Update(ctx, &payer); err != nil {
		return nil, fmt.Errorf("counting the cost of deleted chat %s for chat %s: %w", d.chat.Name, key, err)
	}
	return &payer, nil
}

// patchFinalizers writes the finalizers of a chat that has not changed since it was read; next becomes what is stored.
func (a *actuator) patchFinalizers(ctx context.Context, chat, next *v1beta1.Chat) error {
	err := a.client.Patch(ctx, next, client.MergeFromWithOptions(chat, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("changing the finalizers of chat %s/%s: %w", chat.Namespace, chat.Name, err)
	}
	return err
}
