// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli"
	"parley.dev/parley/internal/netguard/retry"
)

// ReconnectAfter is the wait before a watch that has ended is begun again.
const ReconnectAfter = time.Second

// Watcher begins a watch on a kind of resource.
type Watcher func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)

// Await watches an object until done says that it has reached its end.
func Await[T any](ctx context.Context, begin Watcher, name string, done func(*T) (bool, error)) error {
	for {
		ended, err := awaitOnce(ctx, begin, name, done)
		if ended || err != nil {
			return err
		}
		if err := retry.Sleep(ctx, ReconnectAfter); err != nil { // The API server ends a watch now and then.
			return err
		}
	}
}

func awaitOnce[T any](ctx context.Context, begin Watcher, name string, done func(*T) (bool, error)) (bool, error) {
	watching, err := begin(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return false, fmt.Errorf("watching %s: %w", name, err)
	}
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

// IsReady reads a Ready condition: whether it is final, and the error that it tells.
func IsReady(conditions []metav1.Condition, note func(string)) (final bool, err error) {
	switch ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); {
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
