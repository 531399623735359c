// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tools runs the tools that models call. Whatever goes wrong with a call becomes a result that the model can read
// and act on: an unknown tool, bad arguments, an error, a panic. A batch of calls always yields one result per call.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"parley.dev/parley/api/v1alpha1"
)

// Tool is what a model can call.
type Tool interface {
	// Name that the model calls, of letters, digits, _ and -.
	Name() string
	// Description tells the model when to call it.
	Description() string
	// InputSchema is the JSON schema of the arguments, an object.
	InputSchema() map[string]any
	// Run performs the call. input is a valid JSON object. An error is told to the model in its own words.
	Run(ctx context.Context, input string) (string, error)
}

// Registry holds every tool that there is.
type Registry struct {
	tools map[string]Tool
}

// NewRegistry returns a registry of the tools. Two of the same name are a fault of the program, so it panics.
func NewRegistry(all ...Tool) *Registry {
	r := &Registry{tools: map[string]Tool{}}
	for _, tool := range all {
		if r.tools[tool.Name()] != nil {
			panic("two tools are named " + tool.Name())
		}
		r.tools[tool.Name()] = tool
	}
	return r
}

// Active are the tools that the chat allows, and those that it may turn on, sorted by name.
func (r *Registry) Active(spec *v1alpha1.ChatTools) []Tool {
	var active []Tool
	for _, name := range slices.Sorted(maps.Keys(r.tools)) {
		if _, switched := r.tools[name].(Switched); switched || allows(spec, name) {
			active = append(active, r.tools[name])
		}
	}
	return active
}

func allows(spec *v1alpha1.ChatTools, name string) bool {
	if spec == nil || spec.BuiltIn == nil {
		return true
	}
	return slices.Contains(spec.BuiltIn.Allow, v1alpha1.BuiltInTool(name))
}

// errInterrupted is what the model reads of a call that was cut off.
var errInterrupted = errors.New("the call was interrupted before it produced a result")

// Execute runs the calls at the same time and returns their results in the order of the calls; if one is of an exclusive
// tool and not the only one, it runs none. A call that fails once ctx is done counts as interrupted.
func (r *Registry) Execute(ctx context.Context, spec *v1alpha1.ChatTools, calls []v1alpha1.ToolCall) []v1alpha1.ToolResult {
	results := make([]v1alpha1.ToolResult, len(calls))
	run := r.run
	if exclusive := r.Conflict(calls); exclusive != "" {
		run = r.refuse(exclusive)
	}
	var running sync.WaitGroup
	for i, call := range calls {
		running.Go(func() {
			ctx, done := r.observe(ctx, &call)
			defer done(&results[i])
			output, err := run(ctx, spec, call)
			results[i] = v1alpha1.ToolResult{ID: call.ID, Name: call.Name, Output: Cap(output, MaxResultBytes)}
			if err != nil && ctx.Err() != nil {
				err = errInterrupted
			}
			if err != nil {
				results[i].Output, results[i].IsError = Cap(err.Error(), MaxResultBytes), true
			}
		})
	}
	running.Wait()
	return results
}

func (r *Registry) run(ctx context.Context, spec *v1alpha1.ChatTools, call v1alpha1.ToolCall) (output string, err error) {
	tool, err := r.offered(ctx, spec, call.Name)
	if err != nil {
		return "", err
	}
	input := call.Input
	if strings.TrimSpace(input) == "" {
		input = "{}"
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(input), &object); err != nil {
		return "", fmt.Errorf("the arguments of tool %q are not a JSON object: %w", call.Name, err)
	}
	if object == nil {
		return "", fmt.Errorf("the arguments of tool %q are not a JSON object: they are null", call.Name)
	}
	defer func() {
		if fault := recover(); fault != nil {
			output, err = "", fmt.Errorf("tool %q failed unexpectedly", call.Name)
		}
	}()
	return tool.Run(ctx, input)
}

// offered is the tool of that name. The error tells the model that there is none for it.
func (r *Registry) offered(ctx context.Context, spec *v1alpha1.ChatTools, name string) (Tool, error) {
	tool := r.tools[name]
	switch {
	case tool == nil:
		return nil, fmt.Errorf("tool %q does not exist; the tools on offer are: %s", name, r.names(ctx, spec))
	case !offers(ctx, spec, tool):
		return nil, fmt.Errorf("tool %q is not active in this chat; the tools on offer are: %s", name, r.names(ctx, spec))
	}
	return tool, nil
}

func (r *Registry) names(ctx context.Context, spec *v1alpha1.ChatTools) string {
	var names []string
	for _, tool := range r.Active(spec) {
		if offers(ctx, spec, tool) {
			names = append(names, tool.Name())
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
