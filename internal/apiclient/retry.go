// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ReadUntilAnswered reads until the API server answers with the object, or that there is none. Other errors are tried
// again, with growing pauses, until ctx is done.
func ReadUntilAnswered[T any](ctx context.Context, read func(ctx context.Context) (T, error)) (T, error) {
	for retries := Backoff(); ; {
		object, err := read(ctx)
		if err == nil || apierrors.IsNotFound(err) {
			return object, err
		}
		select {
		case <-ctx.Done():
			return object, ctx.Err()
		case <-time.After(retries.Step()):
		}
	}
}
