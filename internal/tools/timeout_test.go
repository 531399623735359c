// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

// patient is a tool that does something for a while, and ends with its context.
type patient struct {
	tool

	lasts, every time.Duration
	sign         func(call tools.Call)
}

func (p patient) Run(ctx context.Context, call tools.Call) (string, error) {
	over, sign := time.After(p.lasts), time.NewTicker(p.every)
	defer sign.Stop()
	for {
		select {
		case <-over:
			return "done", nil
		case <-sign.C:
			p.sign(call)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func TestLongCallContinuesWhileItReportsProgress(t *testing.T) {
	nothing := func(tools.Call) {}
	const long, often, seldom = 4 * time.Hour, tools.Silence / 2, 2 * tools.Silence
	for name, c := range map[string]struct {
		tool tools.Tool
		want string
		took time.Duration
	}{
		"it says that it is at work": {patient{tool{"a", echo}, long, often, func(c tools.Call) { c.Alive() }}, "done", long},
		"it shows something":         {patient{tool{"a", echo}, long, often, func(c tools.Call) { c.Show("x") }}, "done", long},
		"it says nothing":            {patient{tool{"a", echo}, long, often, nothing}, "the call timed out", tools.Silence},
		"it says something too late": {patient{tool{"a", echo}, long, seldom, func(c tools.Call) { c.Alive() }},
			"whether it was done is not known", tools.Silence},
		"it guards itself": {with{tools.Traits{OwnsTimeout: true}, patient{tool{"a", echo}, long, often, nothing}}, "done", long},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				result := one(t.Context(), c.tool, nil)
				if took := time.Since(began); took != c.took || !strings.Contains(result.Output, c.want) ||
					result.IsError != (c.want != "done") {
					t.Errorf("after %s the result is %+v", took, result)
				}
			})
		})
	}
}

func TestSilentCallIsCanceledAndWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var expected context.Context
		over := false
		hangs := patient{tool{"a", echo}, time.Hour, time.Minute, func(tools.Call) {}}
		one(t.Context(), hangs, func(ctx context.Context) func() {
			expected = ctx
			return func() { over = true }
		})
		if !over || !errors.Is(expected.Err(), context.Canceled) {
			t.Errorf("over is %t, %v", over, expected.Err())
		}
	})
}

func TestInterruptedCallIsNotReportedAsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(tools.Silence/2, func() { cancel(tools.ErrInterrupted) })
		result := one(ctx, patient{tool{"a", echo}, time.Hour, 10 * time.Minute, func(tools.Call) {}}, nil)
		if !strings.Contains(result.Output, "the call was interrupted") {
			t.Errorf("the result is %+v", result)
		}
	})
}

// one makes one call of the tool a.
func one(ctx context.Context, tool tools.Tool, expect func(context.Context) func()) v1alpha1.ToolResult {
	return tools.NewRegistry(tool).Execute(ctx, &tools.Batch{Chat: &v1alpha1.Chat{}, Expect: expect,
		Calls: []v1alpha1.ToolCall{{ID: "1", Name: "a", Input: "{}"}}}, nil)[0]
}
