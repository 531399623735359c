// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"errors"
	"sync"

	"parley.dev/parley/api/v1alpha1"
)

// Batch are calls of one reply that are run together.
type Batch struct {
	// Chat for which they run.
	Chat *v1alpha1.Chat
	// Reply is the version of the history that the reply with the calls was made for: see DueCalls.
	Reply int64
	// Calls to answer.
	Calls []v1alpha1.ToolCall
	// Again is true if an earlier attempt may have made the calls.
	Again bool
	// Known are the results of those calls, by their ids, that are not to be run.
	Known map[string]v1alpha1.ToolResult
	// Expect is told of each call, which is to end soon after its context does; what it returns is called when the call is
	// over. nil: nobody is.
	Expect func(ctx context.Context) (over func())
	// Answers are what people say to calls that have asked, by the ids of the calls.
	Answers map[string]Answer
	// Ask takes the question of a call, if there is room for it; nil: there is none.
	Ask func(call v1alpha1.ToolCall, q Question) (taken bool)
	// Attach takes a file that comes with a result, if there is room for it; nil: there is none.
	Attach func(file v1alpha1.MessageFile) (taken bool)
}

// ErrInterrupted ends the context of calls whose chat was interrupted, or deleted. A context that ends for another
// reason says nothing about the chat: its calls may be made again, by another process.
var ErrInterrupted = errors.New("the chat was interrupted")

// Interrupted reports whether the chat was interrupted, or deleted, for which there is work in ctx.
func Interrupted(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrInterrupted) }

// errMayHaveRun is what the model reads of a call that an earlier attempt may have made.
var errMayHaveRun = errors.New("the generation pod was restarted or lost when this call was due, so that it may have " +
	"run or not: it is not made again by itself. Find out what it did before you repeat it")

// runAgain runs a call that an earlier attempt may have made, unless nobody may make it twice.
func (r *Registry) runAgain(ctx context.Context, name string, call Call) (string, error) {
	if call.Refusal == "" && r.once(name) {
		return "", errMayHaveRun
	}
	return r.run(ctx, name, call)
}

// errCutOff is what the model reads of a call that was cut off.
var errCutOff = errors.New("the call was interrupted before it produced a result")

// Execute runs the calls of a batch at the same time and returns their results in the order of the calls; if one is of
// an exclusive tool and not the only one, it runs none. A call that asks people has no result. One that fails once ctx
// is done counts as interrupted; one that gives no sign of life for Silence is told to end. The observer is told of
// each call that is not known yet; nil: nobody is.
func (r *Registry) Execute(ctx context.Context, b Batch, observe Observer) []v1alpha1.ToolResult {
	results, asking := make([]v1alpha1.ToolResult, len(b.Calls)), make([]bool, len(b.Calls))
	run := r.run
	if b.Again {
		run = r.runAgain
	}
	if exclusive := r.Conflict(b.Calls); exclusive != "" {
		run = r.refuse(exclusive)
	}
	expect := b.Expect
	if expect == nil {
		expect = func(context.Context) func() { return func() {} }
	}
	var running sync.WaitGroup
	for i, call := range b.Calls {
		if known, ok := b.Known[call.ID]; ok {
			results[i] = known
			continue
		}
		running.Go(func() {
			ctx, watch := observe.begin(ctx, &call, r.Has(call.Name))
			defer watch.End(&results[i])
			ctx, alive, end := r.guard(ctx, call.Name)
			defer end()
			defer expect(ctx)()
			output, err := run(ctx, call.Name, b.call(&call, alive, watch))
			results[i] = v1alpha1.ToolResult{ID: call.ID, Name: call.Name, Output: Cap(output, MaxResultBytes)}
			if asking[i] = errors.Is(err, ErrAsks) && ctx.Err() == nil; asking[i] {
				return
			}
			if err := failure(ctx, err); err != nil {
				results[i].Output, results[i].IsError = Cap(err.Error(), MaxResultBytes), true
			}
		})
	}
	running.Wait()
	return made(results, asking)
}

// made are the results of the calls that do not ask.
func made(results []v1alpha1.ToolResult, asking []bool) (all []v1alpha1.ToolResult) {
	for i := range results {
		if !asking[i] {
			all = append(all, results[i])
		}
	}
	return all
}

// call is what the tool of the call is run with.
func (b *Batch) call(call *v1alpha1.ToolCall, alive func(), watch Watch) Call {
	c := Call{
		ID: call.ID, Key: b.key(call.ID), Input: call.Input, Chat: b.Chat, Refusal: call.Refusal,
		Alive: alive, Attach: b.Attach,
		Show: func(piece string) {
			alive()
			watch.Show(piece)
		},
		Again: b.Again,
		Ask:   func(q Question) bool { return b.Ask != nil && b.Ask(*call, q) },
	}
	if c.Attach == nil {
		c.Attach = func(v1alpha1.MessageFile) bool { return false }
	}
	if answer, ok := b.Answers[call.ID]; ok {
		c.Answer = &answer
	}
	return c
}
