// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storedfile deletes files of chats from the object storage: those of a chat when it is deleted, and those that
// no message names a day after their upload. A sweep finds what was missed while no manager ran.
package storedfile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/text/content"
)

const (
	sweepEvery = time.Hour
	// atOnce is how many objects are read from the API server at once.
	atOnce = 50
)

// Reconciler deletes files.
type Reconciler struct {
	// Client reads from the cache.
	Client client.Reader
	// Live reads past the cache, before the sweep deletes anything.
	Live  client.Reader
	Store *archive.Store
	// Owns reports whether this manager works for a namespace.
	Owns func(namespace string) bool
	// Now returns the current time.
	Now func() time.Time
}

// SetupWithManager registers the controller, and the sweep.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("storedfile").
		Watches(&v1beta1.Chat{}, handler.Funcs{DeleteFunc: enqueueDeleted}).
		WithOptions(controller.Options{RateLimiter: requeue.Limiter()}).
		Complete(requeue.IgnoreGone(r))
	if err == nil {
		err = mgr.Add(manager.RunnableFunc(r.keepSweeping))
	}
	if err != nil {
		return fmt.Errorf("setting up the storedfile controller: %w", err)
	}
	return nil
}

// enqueueDeleted enqueues the namespace and the UID of a chat. No UID comes again.
func enqueueDeleted(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) {
	queue.Add(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: e.Object.GetNamespace(),
		Name: string(e.Object.GetUID())}})
}

// Reconcile deletes the files of a chat that was deleted.
func (r *Reconciler) Reconcile(ctx context.Context, deleted ctrl.Request) (ctrl.Result, error) {
	if deleted.Name == "" { // It would name the files of all chats.
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Store.Files().DeleteAll(ctx, deleted.Namespace, deleted.Name)
}

// keepSweeping sweeps now and every hour, until ctx is done.
func (r *Reconciler) keepSweeping(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := r.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Some files that no chat needs were not deleted; trying again in an hour")
		}
		_ = retry.Sleep(ctx, sweepEvery)
	}
	return nil
}

// Sweep deletes the files that no chat needs, in each namespace whose chats can be read.
func (r *Reconciler) Sweep(ctx context.Context) error {
	namespaces, err := r.Store.Files().Namespaces(ctx)
	failed := []error{err}
	for _, ns := range namespaces {
		if r.Owns(ns) {
			failed = append(failed, r.sweep(ctx, ns))
		}
	}
	return errors.Join(failed...)
}

// sweep lists the files before the chats: a file of a chat or message that was created since is too new to be deleted.
// The cache selects the files to ask the API server about.
func (r *Reconciler) sweep(ctx context.Context, namespace string) error {
	var files []archive.File
	for f, err := range r.Store.Files().List(ctx, namespace, "") {
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	for _, from := range []source{{r.Client, 0}, {r.Live, atOnce}} {
		living, err := from.living(ctx, namespace, files)
		if err != nil {
			return err
		}
		if files = unneeded(files, living, r.Now()); len(files) == 0 {
			return nil
		}
	}
	var failed []error
	for _, f := range files {
		failed = append(failed, r.Store.Files().Delete(ctx, namespace, f.UID, f.SHA256, f.Modified))
	}
	return errors.Join(failed...)
}

// source reads objects, as many at once; 0: all of them, from the cache, which has no pages.
type source struct {
	client.Reader
	atOnce int64
}

// living are the digests that the messages of each chat name that exists and has one of the files, by UID.
func (s source) living(ctx context.Context, namespace string, files []archive.File) (map[string][]string, error) {
	asked := map[string]bool{}
	for _, f := range files {
		asked[f.UID] = true
	}
	living, names := map[string][]string{}, map[string]string{}
	var chats v1beta1.ChatList
	err := s.each(ctx, &chats, func() {
		for i := range chats.Items {
			if uid := string(chats.Items[i].UID); asked[uid] {
				living[uid], names[uid] = nil, chats.Items[i].Name
			}
		}
	}, client.InNamespace(namespace))
	for uid, name := range names {
		var messages v1beta1.ChatMessageList
		err = errors.Join(err, s.each(ctx, &messages, func() {
			for i := range messages.Items {
				living[uid] = append(living[uid], content.StoredFiles(&messages.Items[i])...)
			}
		}, client.InNamespace(namespace), client.MatchingFields{index.MessagesByChat: name}))
	}
	return living, err
}

// each reads a list, and calls visit for each page of it.
func (s source) each(ctx context.Context, page client.ObjectList, visit func(), of ...client.ListOption) error {
	for {
		options := append(slices.Clone(of), client.Limit(s.atOnce), client.Continue(page.GetContinue()))
		if err := s.List(ctx, page, options...); err != nil {
			return fmt.Errorf("listing what may need files: %w", err)
		}
		visit()
		if s.atOnce == 0 || page.GetContinue() == "" {
			return nil
		}
	}
}

const (
	// unknownAfter is how long a file is kept whose chat is not known. The deletion of a chat deletes its files. The
	// chat of such a file may be one of a cluster that was lost, or of another one that uses the same bucket by mistake.
	unknownAfter = 30 * 24 * time.Hour
	// unnamedAfter is how long a file is kept that no message of its chat names: its message is written after it.
	unnamedAfter = 24 * time.Hour
)

// unneeded are the files to delete. living are the digests that the messages of each chat name that exists, by UID.
func unneeded(files []archive.File, living map[string][]string, now time.Time) (all []archive.File) {
	for _, f := range files {
		named, exists := living[f.UID]
		age, limit := now.Sub(f.Modified), unknownAfter
		if exists {
			limit = unnamedAfter
		}
		if age > limit && !slices.Contains(named, f.SHA256) {
			all = append(all, f)
		}
	}
	return all
}
