// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/netguard/retry"
)

// waiting is whether and how long a verb waits for what becomes of its request.
type waiting struct {
	wait    bool
	timeout time.Duration
}

func (w *waiting) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", true, "wait until the request was acted on, and fail if it was refused")
	cmd.Flags().DurationVar(&w.timeout, "timeout", time.Minute, "how long to wait")
}

// newAwaited makes a command of a verb on one chat that waits for what becomes of it.
func newAwaited(o *options, cmd *cobra.Command,
	run func(ctx context.Context, s *session, chat string, w waiting) error) *cobra.Command {
	var w waiting
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := o.connect(outName, outJSON, outYAML)
		if err != nil {
			return err
		}
		return run(cmd.Context(), s, args[0], w)
	}
	w.addFlags(cmd)
	return cmd
}

// until waits within the timeout. What it says when time is over names what was last known.
func (w *waiting) until(ctx context.Context, what string,
	wait func(ctx context.Context, note func(string)) error) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	known := "nothing was heard of it; is Parley's manager running?"
	err := wait(ctx, func(s string) { known = s })
	if errors.Is(err, context.DeadlineExceeded) {
		return timeoutError{waited: w.timeout, what: what, known: known}
	}
	return err
}

// reconnectAfter is the wait before a watch that has ended is begun again.
const reconnectAfter = time.Second

// watcher begins a watch on a kind of resource.
type watcher func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)

// await watches an object until done says that it has reached its end.
func await[T any](ctx context.Context, begin watcher, name string, done func(*T) (bool, error)) error {
	for {
		ended, err := awaitOnce(ctx, begin, name, done)
		if ended || err != nil {
			return err
		}
		if err := retry.Sleep(ctx, reconnectAfter); err != nil { // The API server ends a watch now and then.
			return err
		}
	}
}

func awaitOnce[T any](ctx context.Context, begin watcher, name string, done func(*T) (bool, error)) (bool, error) {
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
			return true, missingError{name + " was deleted"}
		}
		if ended, err := done(object); ended || err != nil {
			return true, err
		}
	}
	return false, nil
}

// verdict reads a Ready condition: whether it is final, and the error that it tells.
func verdict(conditions []metav1.Condition, note func(string)) (final bool, err error) {
	switch ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); {
	case ready == nil:
		return false, nil
	case ready.Status == metav1.ConditionUnknown:
		note(ready.Reason + ": " + ready.Message)
		return false, nil
	case ready.Status == metav1.ConditionFalse:
		return true, verdictError{ready.Reason, ready.Message}
	}
	return true, nil
}
