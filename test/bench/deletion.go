// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
)

// deleteAll deletes the chats at rest in the namespace, while the chat warm goes on.
func (b *bench) deleteAll(ctx context.Context, f *Scale, of sizes) error {
	var gone atomic.Bool
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		began := time.Now()
		err := b.deleteAtRest(ctx, of.chats)
		f.Deletion.PerSecond = 2 * float64(of.chats) / time.Since(began).Seconds()
		gone.Store(true)
		return err
	})
	group.Go(func() error {
		w, err := b.turnsOf(ctx, func(done int) bool { return gone.Load() && done > 0 })
		if err == nil {
			f.Deletion.FirstPart, f.Deletion.Turn = w.percentiles()
		}
		return err
	})
	return group.Wait()
}

// deleteAtRest deletes so many chats, and waits until none of their messages is left.
func (b *bench) deleteAtRest(ctx context.Context, chats int) error {
	if err := some(ctx, chats, func(ctx context.Context, i int) error {
		return b.client.Delete(ctx, &v1beta1.Chat{ObjectMeta: meta(fmt.Sprint(restful, i))})
	}); err != nil {
		return fmt.Errorf("deleting chats: %w", err)
	}
	for {
		var first metav1.PartialObjectMetadataList
		first.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ChatMessageList"))
		if err := b.client.List(ctx, &first, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return fmt.Errorf("looking for messages of deleted chats: %w", err)
		}
		if len(first.Items) == 0 || !strings.HasPrefix(first.Items[0].Name, restful) {
			return nil
		}
		time.Sleep(10 * look)
	}
}
