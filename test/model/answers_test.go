// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/model/reference"
)

// actionVerbs are what people and clients do about calls that wait for them. A result is the id of a call, with an
// exclamation mark if its output is not JSON, or a question mark if it is an error.
var actionVerbs = map[string]verb{
	"bring": {
		able:  func(c *reference.Chat, o operation) bool { return isNew(c, o) && len(o.args) > 1 },
		model: func(c *reference.Chat, o operation) { c.Bring(o.arg(0), resultsOf(o)...) },
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.bring(ctx, o.arg(0), resultsOf(o))
		},
	},
	"approve": {
		able:  always,
		model: func(c *reference.Chat, o operation) { c.Decide(o.arg(0), o.arg(1), v1beta1.DecisionApprove) },
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.decide(ctx, o.arg(0), o.arg(1), v1beta1.DecisionApprove)
		},
	},
	"deny": {
		able:  always,
		model: func(c *reference.Chat, o operation) { c.Decide(o.arg(0), o.arg(1), v1beta1.DecisionDeny) },
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.decide(ctx, o.arg(0), o.arg(1), v1beta1.DecisionDeny)
		},
	},
}

func resultsOf(o operation) (results []reference.Result) {
	for _, arg := range o.args[1:] {
		id, malformed := strings.CutSuffix(arg, "!")
		id, failed := strings.CutSuffix(id, "?")
		results = append(results, reference.Result{ID: id, Malformed: malformed, Failed: failed})
	}
	return results
}

// generatorVerbs are how an attempt can end. A reply lists the kinds of its calls.
var generatorVerbs = map[string]verb{
	"finish": {
		able:  hasAttempt,
		model: func(c *reference.Chat, o operation) { c.Finish(o.arg(0), callsOf(c, o)...) },
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.answer(ctx, o.arg(0), o.args[1:])
		},
	},
	"stop": {
		able: func(c *reference.Chat, o operation) bool {
			return hasAttempt(c, o) && c.Attempt.Action == v1beta1.ActionExecuteTools
		},
		model: func(c *reference.Chat, o operation) { c.Stop(o.arg(0)) },
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.answer(ctx, o.arg(0), nil, chattest.StoppedBy("own"))
		},
	},
	"partial": { // Nothing is kept of a summary.
		able: func(c *reference.Chat, o operation) bool {
			return hasAttempt(c, o) && c.Attempt.Action != v1beta1.ActionCompact
		},
		model: func(c *reference.Chat, o operation) { c.HandOver(o.arg(0), callsOf(c, o)...) },
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.answer(ctx, o.arg(0), o.args[1:], chattest.Interrupted())
		},
	},
	"nothing": {
		able:  hasAttempt,
		model: func(c *reference.Chat, _ operation) { c.HandOverNothing() },
		real: func(ctx context.Context, d *driver, _ operation) error {
			return d.report(ctx, chattest.Interrupted())
		},
	},
	"fail": {
		able:  hasAttempt,
		model: func(c *reference.Chat, o operation) { c.Fail(v1beta1.ErrorReason(o.arg(0))) },
		real: func(ctx context.Context, d *driver, o operation) error {
			return d.report(ctx, chattest.Fails(v1beta1.ErrorReason(o.arg(0))))
		},
	},
	"flunk": {
		able:  hasAttempt,
		model: func(c *reference.Chat, _ operation) { c.FailForNow() },
		real: func(ctx context.Context, d *driver, _ operation) error {
			return d.report(ctx, chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow))
		},
	},
	"lose": {
		able:  hasAttempt,
		model: func(c *reference.Chat, _ operation) { c.Lose() },
		real: func(ctx context.Context, d *driver, _ operation) error {
			return d.report(ctx, chattest.Lost())
		},
	},
	"late": { // An answer to an attempt that was given up.
		able: always, model: nothing,
		real: func(ctx context.Context, d *driver, o operation) error { return d.late(ctx, o.arg(0)) },
	},
}

func hasAttempt(c *reference.Chat, o operation) bool {
	return c.Attempt != nil && c.Committed(o.arg(0)) == nil
}

// requires says what each letter for a kind of call stands for.
var requires = map[string]v1beta1.RequiredAction{"own": "", "wait": "", "client": v1beta1.RequiresClient,
	"approval": v1beta1.RequiresApproval}

// callsOf are the calls of a reply. An attempt at running tools makes none.
func callsOf(c *reference.Chat, o operation) (calls []reference.Call) {
	if c.Attempt.Action != v1beta1.ActionGenerateAssistant {
		return nil
	}
	for i, kind := range o.args[1:] {
		call := reference.Call{ID: callID(o.arg(0), i), RequiresAction: requires[kind]}
		if kind == "wait" && c.Sub != nil {
			call.WaitsFor = c.Sub.Name
		}
		calls = append(calls, call)
	}
	return calls
}

func callID(reply string, n int) string { return fmt.Sprintf("%s.%d", reply, n) }

// toolCalls are the same calls, as a generation pod writes them.
func toolCalls(reply string, kinds []string) (calls []v1beta1.ToolCall) {
	for i, kind := range kinds {
		calls = append(calls, *toolCall(callID(reply, i), kind))
	}
	return calls
}

func toolCall(id, kind string) *v1beta1.ToolCall {
	return &v1beta1.ToolCall{ID: id, Name: kind, Input: "{}", RequiresAction: requires[kind]}
}
