// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"parley.dev/parley/api/v1alpha1"
)

// Around observes a call, which run runs, once. Before that it may set how the call shows, asks and attaches.
type Around func(ctx context.Context, call *Call, run func(context.Context) v1alpha1.ToolResult) v1alpha1.ToolResult

// Execute runs the calls of a batch at the same time and returns their results in the order of the calls; if one is of
// an exclusive tool and not the only one, it runs none. A call that asks people has no result. One that fails once ctx
// is done counts as interrupted; one that gives no sign of life for Silence is told to end. Each call whose result is
// not known is run within around; nil: by itself.
func (r *Registry) Execute(ctx context.Context, b *Batch, around Around) (results []v1alpha1.ToolResult) {
	if around == nil {
		around = func(ctx context.Context, _ *Call, run func(context.Context) v1alpha1.ToolResult) v1alpha1.ToolResult {
			return run(ctx)
		}
	}
	all, asking, exclusive := make([]v1alpha1.ToolResult, len(b.Calls)), make([]bool, len(b.Calls)), r.Conflict(b.Calls)
	var running sync.WaitGroup
	for i := range b.Calls {
		known, ok := b.Known[b.Calls[i].ID]
		if ok {
			all[i] = known
			continue
		}
		running.Go(func() {
			call := b.call(b.Calls[i])
			all[i] = around(ctx, &call, func(ctx context.Context) (result v1alpha1.ToolResult) {
				result, asking[i] = r.execute(ctx, call, exclusive, b.Expect)
				return result
			})
		})
	}
	running.Wait()
	for i := range all {
		if !asking[i] {
			results = append(results, all[i])
		}
	}
	return results
}

// execute runs a call. asks is true if it asks people in place of a result.
func (r *Registry) execute(ctx context.Context, call Call, exclusive string, expect func(context.Context) func()) (
	result v1alpha1.ToolResult, asks bool,
) {
	ctx, alive, end := guard(ctx, r.Traits(call.Name).OwnsTimeout)
	defer end()
	if expect != nil {
		defer expect(ctx)()
	}
	show := call.Show
	call.Alive, call.Show = alive, func(piece string) {
		alive()
		show(piece)
	}
	output, err := r.run(ctx, call, exclusive)
	if errors.Is(err, ErrAsks) && ctx.Err() == nil {
		return v1alpha1.ToolResult{ID: call.ID, Name: call.Name}, true
	}
	if err = failure(ctx, err); err != nil {
		output = err.Error()
	}
	return v1alpha1.ToolResult{ID: call.ID, Name: call.Name, Output: Truncate(output, MaxResultBytes),
		IsError: err != nil}, false
}

// errMayHaveRun is what the model reads of a call that an earlier attempt may have made.
var errMayHaveRun = errors.New("the generation pod was restarted or lost when this call was due, so that it may have " +
	"run or not: it is not made again by itself. Find out what it did before you repeat it")

// errCutOff is what the model reads of a call that was cut off.
var errCutOff = errors.New("the call was interrupted before it produced a result")

// run runs a call, unless the reply calls the exclusive tool next to others.
func (r *Registry) run(ctx context.Context, call Call, exclusive string) (output string, err error) {
	switch {
	case exclusive != "":
		return "", r.refuse(&call, exclusive)
	case call.Again && call.Refusal == "" && r.Traits(call.Name).AtMostOnce:
		return "", errMayHaveRun
	}
	tool, err := r.callable(&call)
	if err != nil {
		return "", err
	}
	defer func() {
		if fault := recover(); fault != nil {
			output, err = "", fmt.Errorf("tool %q failed unexpectedly", call.Name)
		}
	}()
	return tool.Run(ctx, call)
}

// Conflict is the exclusive tool that calls of one reply name next to others; empty if there is none. It depends on the
// names alone, not on what the chat allows at the moment: calls that need not wait for people because none will be run
// must not be run after all because the chat has changed.
func (r *Registry) Conflict(calls []v1alpha1.ToolCall) string {
	calls = slices.DeleteFunc(slices.Clone(calls), func(call v1alpha1.ToolCall) bool {
		return call.Refusal == v1alpha1.RefusalCutByLength || call.Refusal == v1alpha1.RefusalInputInvalid
	})
	for _, call := range calls {
		if len(calls) > 1 && r.Traits(call.Name).Exclusive {
			return call.Name
		}
	}
	return ""
}

// refuse is why a call is not run, because the reply calls the exclusive tool next to others.
func (r *Registry) refuse(call *Call, exclusive string) error {
	if !r.Traits(call.Name).Exclusive {
		return fmt.Errorf("this call was skipped, because the same reply called tool %q, which must be called alone; "+
			"call this one again without it, or after it", exclusive)
	}
	if _, err := r.offered(call.Chat, call.Name); err != nil {
		return err
	}
	return fmt.Errorf("tool %q must be called alone, so nothing of this reply was run; call it again in a reply "+
		"without other calls", call.Name)
}
