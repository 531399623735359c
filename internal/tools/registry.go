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
	"parley.dev/parley/internal/approval/toolpolicy"
)

// Tool is what a model can call.
type Tool interface {
	// Definition is what the tool is. It is always the same.
	Definition() Definition
	// Run performs the call. An error is told to the model in its own words.
	Run(ctx context.Context, call Call) (string, error)
}

// Registry holds every tool that there is.
type Registry struct {
	tools map[string]registered
	// absent says why there is no tool of that name; nil: there is nothing to say.
	absent func(name string) error
}

// registered is a tool with its definition.
type registered struct {
	Tool
	Definition
	// added is true for tools that are not built in: see Plus.
	added bool
}

// NewRegistry returns a registry of the tools. Two of the same name are a fault of the program, so it panics.
func NewRegistry(all ...Tool) *Registry {
	r := &Registry{tools: map[string]registered{}}
	for _, tool := range all {
		if !r.add(tool, false) {
			panic("two tools are named " + tool.Definition().Name)
		}
	}
	return r
}

// add reports whether the name was free.
func (r *Registry) add(tool Tool, added bool) bool {
	d := tool.Definition()
	_, taken := r.tools[d.Name]
	if !taken {
		r.tools[d.Name] = registered{tool, d, added}
	}
	return !taken
}

// With returns a registry that has the tool in place of the one of its name, if there is one.
func (r *Registry) With(tool Tool) *Registry {
	d := tool.Definition()
	if !r.Has(d.Name) {
		return r
	}
	with := &Registry{tools: maps.Clone(r.tools), absent: r.absent}
	with.tools[d.Name] = registered{tool, d, false}
	return with
}

// Plus returns a registry that has these tools in addition, such as those of a chat's own servers. One whose name is
// taken is left out. absent says why there is no tool of a name that might be one of theirs; nil: there is nothing to
// say.
func (r *Registry) Plus(more []Tool, absent func(name string) error) *Registry {
	plus := &Registry{tools: maps.Clone(r.tools), absent: absent}
	for _, tool := range more {
		plus.add(tool, true)
	}
	return plus
}

// Has reports whether there is a built-in tool of that name.
func (r *Registry) Has(name string) bool { return r.tools[name].Tool != nil && !r.tools[name].added }

// Traits are those of the tool of that name; none if there is no such tool.
func (r *Registry) Traits(name string) Traits { return r.tools[name].Traits }

// Suited are the tools that the chat allows and has turned on, and has a use for or names itself in spec.tools.allow,
// sorted by name.
func (r *Registry) Suited(chat *v1alpha1.Chat) (suited []Definition) {
	for _, name := range slices.Sorted(maps.Keys(r.tools)) {
		d := r.tools[name].Definition
		if d.active(chat, name) && (d.UsefulTo == nil || d.UsefulTo(chat) ||
			toolpolicy.Names(chat.Spec.Tools, name)) {
			suited = append(suited, d)
		}
	}
	return suited
}

// active reports whether the chat allows the tool of that name, and has turned it on.
func (t Traits) active(chat *v1alpha1.Chat, name string) bool {
	return toolpolicy.Allows(chat.Spec.Tools, name) && (t.EnabledFor == nil || t.EnabledFor(chat))
}

// Offered are the tools that the model of the chat is told of: those that suit it, sorted by name, and those of its
// client.
func (r *Registry) Offered(chat *v1alpha1.Chat) []Definition {
	return append(r.Suited(chat), OfClient(chat.Spec.Tools)...)
}

// offered is the tool of that name. The error tells the model that there is none for it.
func (r *Registry) offered(chat *v1alpha1.Chat, name string) (Tool, error) {
	tool, ok := r.tools[name]
	if !ok && r.absent != nil {
		if err := r.absent(name); err != nil {
			return nil, err
		}
	}
	switch {
	case !ok:
		return nil, fmt.Errorf("tool %q does not exist; the tools on offer are: %s", name, r.names(chat))
	case !tool.active(chat, name):
		return nil, fmt.Errorf("tool %q is not active in this chat; the tools on offer are: %s", name, r.names(chat))
	}
	return tool.Tool, nil
}

func (r *Registry) names(chat *v1alpha1.Chat) string {
	var names []string
	for _, d := range r.Offered(chat) {
		names = append(names, d.Name)
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
