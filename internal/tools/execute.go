// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval"
)

// Silence is the idle timeout of a call: a minute. A call that waits for a command reports progress every 15 s. A
// request that a workspace does not answer may take longer: see TimedOut.
const Silence = time.Minute

var (
	// errSilent is the cause of the context of a call that reached the idle timeout.
	errSilent = errors.New("the call gave no sign of life")

	errTimedOut = fmt.Errorf("the call timed out after %s without progress; whether it was done is not known", Silence)
	errCutOff   = errors.New("the call was interrupted before it produced a result")
	// errMayHaveRun is the error of a call that an earlier attempt may have made.
	errMayHaveRun = errors.New("the generation pod was restarted or lost when this call was due, so that it may have " +
		"run or not: it is not made again by itself. Find out what it did before you repeat it")
)

// TimedOut reports whether the idle timeout has ended the call of ctx. The call may still return what it knows: a
// result counts, and an error is replaced.
func TimedOut(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errSilent) }

// Around observes a call, which run runs, once. Before that it may set how the call shows, asks and attaches.
type Around func(ctx context.Context, call *Call, run func(context.Context) v1beta1.ToolResult) v1beta1.ToolResult

// Execute runs the calls of a batch at the same time and returns their results in the order of the calls. If an
// exclusive tool is called next to others, it runs none. A call that asks people has no result. A call that fails after
// ctx is done counts as interrupted. Each call without a known result runs within around, which may be nil.
func (r *Registry) Execute(ctx context.Context, b *Batch, around Around) (results []v1beta1.ToolResult) {
	if around == nil {
		around = func(ctx context.Context, _ *Call, run func(context.Context) v1beta1.ToolResult) v1beta1.ToolResult {
			return run(ctx)
		}
	}
	all, asking, exclusive := make([]v1beta1.ToolResult, len(b.Calls)), make([]bool, len(b.Calls)), r.Conflict(b.Calls)
	var running sync.WaitGroup
	for i := range b.Calls {
		known, ok := b.Known[b.Calls[i].ID]
		if ok {
			all[i] = known
			continue
		}
		running.Go(func() {
			call := b.call(b.Calls[i])
			all[i] = around(ctx, &call, func(ctx context.Context) (result v1beta1.ToolResult) {
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
	result v1beta1.ToolResult, asks bool,
) {
	ctx, alive, cancel := withIdleTimeout(ctx, r.Traits(call.Name).OwnsTimeout)
	defer cancel()
	if expect != nil {
		defer expect(ctx)()
	}
	show := call.Show
	call.Alive, call.Show = alive, func(piece string) {
		alive()
		show(piece)
	}
	result = v1beta1.ToolResult{ID: call.ID, Name: call.Name}
	output, err := r.run(ctx, call, exclusive)
	switch {
	case err == nil:
	case ctx.Err() == nil && errors.Is(err, ErrAsks):
		return result, true
	case TimedOut(ctx):
		err = errTimedOut
	case ctx.Err() != nil:
		err = errCutOff
	}
	if err != nil {
		output, result.IsError = err.Error(), true
	}
	result.Output = Truncate(output, MaxResultBytes)
	return result, false
}

// withIdleTimeout returns the context of a call, which ends if alive is not called for Silence, unless the tool owns
// its timeout.
func withIdleTimeout(ctx context.Context, owned bool) (calling context.Context, alive, end func()) {
	calling, cancel := context.WithCancelCause(ctx)
	if owned {
		return calling, func() {}, func() { cancel(nil) }
	}
	timer := time.AfterFunc(Silence, func() { cancel(errSilent) })
	return calling, func() { timer.Reset(Silence) }, func() {
		timer.Stop()
		cancel(nil)
	}
}

// run runs a call, unless the reply calls the exclusive tool next to others.
func (r *Registry) run(ctx context.Context, call Call, exclusive string) (output string, err error) {
	switch {
	case exclusive != "":
		return "", r.conflictError(&call, exclusive)
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
// names alone: a change of the chat must not make calls run that needed no approval because of a conflict.
func (r *Registry) Conflict(calls []v1beta1.ToolCall) string {
	calls = slices.DeleteFunc(slices.Clone(calls), func(call v1beta1.ToolCall) bool {
		return call.Refusal == v1beta1.RefusalInputTruncated || call.Refusal == v1beta1.RefusalInputInvalid
	})
	for _, call := range calls {
		if len(calls) > 1 && r.Traits(call.Name).Exclusive {
			return call.Name
		}
	}
	return ""
}

// conflictError explains why a call is not run whose reply calls the exclusive tool next to others.
func (r *Registry) conflictError(call *Call, exclusive string) error {
	if !r.Traits(call.Name).Exclusive {
		return fmt.Errorf("this call was skipped, because the same reply called tool %q, which must be called alone; "+
			"call this one again without it, or after it", exclusive)
	}
	if _, err := r.find(call.Chat, call.Name); err != nil {
		return err
	}
	return fmt.Errorf("tool %q must be called alone, so nothing of this reply was run; call it again in a reply "+
		"without other calls", call.Name)
}

// callable is the tool of a call. The error tells the model why the call is not run.
func (r *Registry) callable(call *Call) (Tool, error) {
	name := call.Name
	switch call.Refusal { // These two also concern a client's tools, which no registry has.
	case v1beta1.RefusalInputTruncated:
		return nil, fmt.Errorf("tool %q was not run: your reply reached its limit of tokens within the input of this call; "+
			"call it again with less input, in several calls if need be", name)
	case v1beta1.RefusalInputInvalid:
		return nil, fmt.Errorf("tool %q was not run: its input must be a JSON object, but is %s; call it again with a JSON "+
			"object, {} if there are no arguments", name, describeInput(call.Input))
	}
	tool, err := r.find(call.Chat, name)
	if err != nil {
		return nil, err
	}
	switch call.Refusal {
	case v1beta1.RefusalNotAllowed:
		return nil, fmt.Errorf("tool %q was not active in this chat when it was called, so it is not known whether "+
			"the call requires approval: call it again", name)
	case v1beta1.RefusalInputTooLarge:
		return nil, approval.TooLarge(call.Input)
	}
	return tool, nil
}

// describeInput names the type of an input that is not a JSON object.
func describeInput(input string) string {
	var value json.RawMessage
	if err := json.Unmarshal([]byte(input), &value); err != nil {
		return fmt.Sprintf("not JSON (%v)", err)
	}
	switch value[0] {
	case '"':
		return "a JSON string: send the object itself, without quotes around it"
	case '[':
		return "a list"
	case 't', 'f':
		return "a boolean"
	}
	return "a number"
}
