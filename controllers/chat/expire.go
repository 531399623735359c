// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parley.dev/parley/api/v1beta1"
)

// lookAtRest is when to look again at a chat that the API server shows at work and the cache at rest: 1 s.
const lookAtRest = time.Second

// expire deletes a chat that has rested for long enough, if the API server agrees that it rests, and archives it before
// if its retention asks for that.
func (r *Reconciler) expire(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !s.facts.Chat.Spec.Retention.Archives() {
		return r.deleteAtRest(ctx, s)
	}
	// First, since asking the API server whether the chat rests costs much for each chat that waits for its turn.
	end, again := r.archiver.begin(s.facts.Chat)
	if again > 0 {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	defer end()
	if rests, err := r.gatherer.stillRests(ctx, s); err != nil || !rests {
		return ctrl.Result{RequeueAfter: lookAtRest}, err
	}
	if again, err := r.archiver.archive(ctx, s.facts.Chat); err != nil || again > 0 {
		return ctrl.Result{RequeueAfter: again}, err
	}
	// While it was written, people could say something to a chat below it.
	result, err := r.deleteAtRest(ctx, s)
	if apierrors.IsConflict(err) || err == nil && result.RequeueAfter > 0 {
		r.archiver.discard(ctx, s.facts.Chat)
	}
	return result, err
}

// deleteAtRest deletes the chat if the API server agrees that it rests.
func (r *Reconciler) deleteAtRest(ctx context.Context, s *scope) (ctrl.Result, error) {
	if rests, err := r.gatherer.stillRests(ctx, s); err != nil || !rests {
		return ctrl.Result{RequeueAfter: lookAtRest}, err
	}
	deleted, err := r.actuator.deleteExpired(ctx, s.facts.Chat)
	if deleted {
		r.observer.expired(ctx, s.facts.Chat)
	}
	return ctrl.Result{}, err
}

// deleteExpired deletes the chat as it was read. A newer one is a conflict, after which it is decided again.
func (a *actuator) deleteExpired(ctx context.Context, chat *v1beta1.Chat) (deleted bool, err error) {
	uid, version := chat.UID, chat.ResourceVersion
	err = a.client.Delete(ctx, chat, client.Preconditions{UID: &uid, ResourceVersion: &version})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("deleting chat %s/%s, which has expired: %w", chat.Namespace, chat.Name, err)
	}
	return true, nil
}

// expired reports that a chat was deleted by its retention: by then it is gone, and nothing else could say why.
func (o *observer) expired(ctx context.Context, chat *v1beta1.Chat) {
	rested := o.now().Sub(chat.Status.IdleSince.Time).Truncate(time.Second)
	log.FromContext(ctx).Info("deleted a chat that has expired", "restedFor", rested.String())
	o.recorder.Eventf(chat, nil, corev1.EventTypeNormal, string(v1beta1.EventExpired),
		string(v1beta1.EventActionDelete), "The chat had rested for %s (spec.retention, or retention or keep of its "+
			"ChatClass) and was deleted with all below it", rested)
}
