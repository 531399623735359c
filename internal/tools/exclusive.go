// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"fmt"
	"slices"

	"parley.dev/parley/api/v1alpha1"
)

// Exclusive is a Tool that must be the only one that a reply calls. Of a reply that breaks this nothing is run.
type Exclusive interface {
	Tool
	// Exclusive marks the tool.
	Exclusive()
}

// Conflict is the exclusive tool that calls of one reply name besides others; empty if there is none. It depends on the
// names alone, not on what the chat allows at the moment: calls that need not wait for people because none will be run
// must not be run after all because the chat has changed.
func (r *Registry) Conflict(calls []v1alpha1.ToolCall) string {
	calls = slices.DeleteFunc(slices.Clone(calls), func(call v1alpha1.ToolCall) bool {
		return call.Refusal == v1alpha1.RefusalCutByLength || call.Refusal == v1alpha1.RefusalInputInvalid
	})
	if len(calls) < 2 {
		return ""
	}
	for _, call := range calls {
		if r.exclusive(call.Name) {
			return call.Name
		}
	}
	return ""
}

func (r *Registry) exclusive(name string) bool {
	_, ok := r.tools[name].(Exclusive)
	return ok
}

// refuse runs no call, because the reply calls the exclusive tool besides others.
func (r *Registry) refuse(exclusive string) func(context.Context, string, Call) (string, error) {
	return func(_ context.Context, name string, call Call) (string, error) {
		if !r.exclusive(name) {
			return "", fmt.Errorf("this call was skipped, because the same reply called tool %q, which must be called alone; "+
				"call this one again without it, or after it", exclusive)
		}
		if _, err := r.offered(call.Chat, name); err != nil {
			return "", err
		}
		return "", fmt.Errorf("tool %q must be called alone, so nothing of this reply was run; call it again in a reply "+
			"without other calls", name)
	}
}
