// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tools runs the tools that models call. Whatever goes wrong with a call becomes a result that the model can
// read and act on: an unknown tool, bad arguments, an error, a panic. A batch of calls always yields one result per
// call.
package tools

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/toolpolicy"
)

// Tool is what a model can call.
type Tool interface {
	// Name that the model calls, of letters, digits, _ and -.
	Name() string
	// Description tells the model when to call it.
	Description() string
	// InputSchema is the JSON schema of the arguments, an object.
	InputSchema() map[string]any
	// Run performs the call. An error is told to the model in its own words.
	Run(ctx context.Context, call Call) (string, error)
}

// Call is what a tool is run with.
type Call struct {
	// ID of the call, unique within the reply.
	ID string
	// Key of the call, which is the same when it is made again and that of no other call: protocol.ValidKey holds for it.
	Key string
	// Input are the arguments, a valid JSON object, unless the call is refused.
	Input string
	// Chat for which the tool runs, as it was when the step began.
	Chat *v1alpha1.Chat
	// Refusal is why the call is not run; empty if it is.
	Refusal v1alpha1.CallRefusal
	// Show shows a piece of what the tool has to say while it runs. What it shows is a preview: only the result counts.
	Show func(piece string)
	// Alive says that the tool is at work: see Silence. Show says so, too.
	Alive func()
	// Again is true if an earlier attempt, or an earlier life of the process, may have made the call.
	Again bool
	// Ask asks people, if the message with the results of the batch has room for the question. The call then ends with
	// ErrAsks.
	Ask func(Question) (taken bool)
	// Answer is that to the call's Question, if it has asked one.
	Answer *Answer
	// Attach puts a file beside the result, if there is room for it: there always is for an Attaching tool.
	Attach func(file v1alpha1.MessageFile) (taken bool)
}

// Registry holds every tool that there is.
type Registry struct {
	tools map[string]Tool
	// added are the tools that are not built in: see Plus.
	added map[string]bool
	// absent says why there is no tool of that name; nil: nobody knows more.
	absent func(name string) error
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

// With returns a registry that has the tool in place of the one of its name, if there is one.
func (r *Registry) With(tool Tool) *Registry {
	if !r.Has(tool.Name()) {
		return r
	}
	with := &Registry{tools: maps.Clone(r.tools), added: r.added, absent: r.absent}
	with.tools[tool.Name()] = tool
	return with
}

// Has reports whether there is a built-in tool of that name.
func (r *Registry) Has(name string) bool { return r.tools[name] != nil && !r.added[name] }

// Active are the tools that the chat allows, and those that it may turn on, sorted by name.
func (r *Registry) Active(spec *v1alpha1.ChatTools) []Tool {
	var active []Tool
	for _, name := range slices.Sorted(maps.Keys(r.tools)) {
		if toolpolicy.Allows(spec, name) {
			active = append(active, r.tools[name])
		}
	}
	return active
}

// Offered are the tools that the model of the chat is told of: the active ones that suit it, sorted by name, and those
// of its client.
func (r *Registry) Offered(chat *v1alpha1.Chat) []Tool {
	return append(Suited(r.Active(chat.Spec.Tools), chat), OfClient(chat.Spec.Tools)...)
}

func (r *Registry) run(ctx context.Context, name string, call Call) (output string, err error) {
	tool, err := r.toRun(name, &call)
	if err != nil {
		return "", err
	}
	defer func() {
		if fault := recover(); fault != nil {
			output, err = "", fmt.Errorf("tool %q failed unexpectedly", name)
		}
	}()
	return tool.Run(ctx, call)
}

// offered is the tool of that name. The error tells the model that there is none for it.
func (r *Registry) offered(chat *v1alpha1.Chat, name string) (Tool, error) {
	tool := r.tools[name]
	if tool == nil && r.absent != nil {
		if err := r.absent(name); err != nil {
			return nil, err
		}
	}
	switch {
	case tool == nil:
		return nil, fmt.Errorf("tool %q does not exist; the tools on offer are: %s", name, r.names(chat))
	case !offers(chat, tool):
		return nil, fmt.Errorf("tool %q is not active in this chat; the tools on offer are: %s", name, r.names(chat))
	}
	return tool, nil
}

func (r *Registry) names(chat *v1alpha1.Chat) string {
	var names []string
	for _, tool := range r.Offered(chat) {
		names = append(names, tool.Name())
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Unread is the error of a read from the API server that failed, without its words.
func Unread(ctx context.Context, what string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%s cannot be read at the moment; try again", what)
}
