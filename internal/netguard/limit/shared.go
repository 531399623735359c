// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/singleflight"
)

// Shared makes one call for all that ask for the same key at the same time. A caller whose ctx is done leaves; the call
// goes on for the others, until its timeout.
func Shared[T any](ctx context.Context, calls *singleflight.Group, key string, timeout time.Duration,
	call func(context.Context) (T, error)) (T, error) {
	result := calls.DoChan(key, func() (any, error) {
		calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		return call(calling)
	})
	var value T
	select {
	case r := <-result:
		value, _ = r.Val.(T)
		return value, r.Err
	case <-ctx.Done():
		return value, errors.Join(ctx.Err(), context.Cause(ctx))
	}
}
