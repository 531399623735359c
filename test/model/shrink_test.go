// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley.dev/parley/internal/chat/plan"
)

// shrinkPatience is how long the operator may take while a sequence is shrunk: shorter, because most of the time is
// spent on waiting for what does not come, but long enough for a chat to say that a person has to create its model.
const shrinkPatience = plan.ManifestPatience + 2*time.Second

// shrink drops operations for as long as the sequence fails without them and there is time. Each round tries every
// sequence that lacks one operation, all at once, and goes on with all those dropped that are dispensable,
// together if that fails too.
func (r *runner) shrink(ops []operation, err error) ([]operation, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), *shrinkFlag)
	defer cancel()
	if d, ok := errors.AsType[*difference](err); ok {
		ops = ops[:d.at+1]
	}
	ops = carriedOut(ops)
	if _, again := r.without(ctx, ops, nil); again == nil {
		return ops, fmt.Errorf("it did not fail when it was tried again: it is a race. At first it failed like this:\n%w",
			err)
	}
	for len(ops) > 1 {
		dispensable := r.dispensable(ctx, ops)
		if len(dispensable) == 0 || ctx.Err() != nil {
			break
		}
		fewer, failure := r.without(ctx, ops, dispensable)
		if failure == nil {
			fewer, failure = r.without(ctx, ops, dispensable[len(dispensable)-1:])
		}
		if failure == nil {
			break
		}
		ops, err = fewer, failure
	}
	return ops, err
}

// carriedOut are the operations that are possible when their turn comes.
func carriedOut(ops []operation) []operation {
	c, able := beginning(ops[0]), ops[:1:1]
	for _, o := range ops[1:] {
		if possible(c, o) {
			means(c, o)
			able = append(able, o)
		}
	}
	return able
}

// dispensable are the indexes of operations without each of which the sequence still fails.
func (r *runner) dispensable(ctx context.Context, ops []operation) (indexes []int) {
	var mu sync.Mutex
	var tries sync.WaitGroup
	for i := 1; i < len(ops); i++ {
		tries.Go(func() {
			if _, err := r.without(ctx, ops, []int{i}); err != nil {
				mu.Lock()
				defer mu.Unlock()
				indexes = append(indexes, i)
			}
		})
	}
	tries.Wait()
	slices.Sort(indexes)
	return indexes
}

// without runs the sequence without some operations and returns what is left of it, and its failure.
func (r *runner) without(ctx context.Context, ops []operation, dropped []int) ([]operation, error) {
	var fewer []operation
	for i, o := range ops {
		if !slices.Contains(dropped, i) {
			fewer = append(fewer, o)
		}
	}
	_, err := r.run(ctx, fewer, shrinkPatience)
	var d *difference
	if errors.As(err, &d) && ctx.Err() == nil {
		return carriedOut(fewer[:d.at+1]), err
	}
	return fewer, nil
}
