// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

func TestOnlyTrustedServersSayWhichToolsLook(t *testing.T) {
	s := newServer()
	for name, hints := range map[string]*sdk.ToolAnnotations{
		"reads": {ReadOnlyHint: true}, "sets": {IdempotentHint: true}, "acts": nil,
	} {
		s.AddTool(&sdk.Tool{Name: name, Annotations: hints, InputSchema: map[string]any{"type": "object"}}, says("ok"))
	}
	entry := serve(t, stateless(s))
	servers, _ := newServers(t, nil)
	for _, trusted := range []bool{true, false} {
		entry.Trusted = trusted
		for _, tool := range offer(t, servers, entry).Tools() {
			d := tool.Definition()
			plan, explore := tools.WithApproval, tools.Forbidden
			if trusted && d.Name == "s__reads" {
				plan, explore = tools.Free, tools.Free
			}
			for mode, want := range map[v1alpha1.ChatMode]tools.Use{v1alpha1.ModePlan: plan, v1alpha1.ModeExplore: explore} {
				if got := d.In(mode); got != want {
					t.Errorf("trusted: %v, %s: %v in mode %s", trusted, d.Name, got, mode)
				}
			}
		}
	}
}
