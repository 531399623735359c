// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"errors"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/internal/text/jsonschema"
	"parley.dev/parley/internal/tools/arguments"
)

// Tool is what a model can call.
type Tool interface {
	// Definition of the tool. It is always the same.
	Definition() Definition
	// Run performs the call. The model reads the error.
	Run(ctx context.Context, call Call) (string, error)
}

// New returns a tool that decodes the arguments of its calls, by the schema of the definition.
func New[A any](d Definition, run func(ctx context.Context, call Call, args A) (string, error)) Tool {
	return function[A]{d, run}
}

type function[A any] struct {
	definition Definition
	run        func(ctx context.Context, call Call, args A) (string, error)
}

// Definition implements Tool.
func (f function[A]) Definition() Definition { return f.definition }

// Run implements Tool.
func (f function[A]) Run(ctx context.Context, call Call) (string, error) {
	var args A
	if err := arguments.Decode(f.definition.InputSchema, call.Input, &args); err != nil {
		return "", err
	}
	return f.run(ctx, call, args)
}

// Definition is what a tool is: for models, for the registry, and for people.
type Definition struct {
	// Name that the model calls, of letters, digits, _ and -.
	Name string
	// Description tells the model when to call it.
	Description string
	// InputSchema is the JSON schema of the arguments, an object.
	InputSchema map[string]any
	// Traits determine to which chats it is offered, and how its calls are run.
	Traits
	// Reference is its section in docs/reference/tools.md. Every built-in tool has one.
	Reference Reference

	// client is what the tool was defined by, if a client of the chat runs it.
	client *v1beta1.ClientTool
}

// Traits determine to which chats a tool is offered, how its calls are approved and run, and the effects of their
// results. A tool without any is offered to every chat without a mode, and its calls run next to others. A new attempt
// makes them again, but a process that resumes an attempt does not.
type Traits struct {
	// Plan and Explore determine whether chats in these modes may call the tool. Default: Forbidden.
	Plan, Explore Use
	// EnabledFor reports whether a field of the chat turns the tool on. Other chats cannot call it. nil: every chat can.
	EnabledFor func(chat *v1beta1.Chat) bool
	// UsefulTo reports whether the chat has a use for the tool. Another chat is offered it only if spec.tools.allow names
	// it. nil: every chat has.
	UsefulTo func(chat *v1beta1.Chat) bool

	// Exclusive tools must be the only ones that a reply calls. Otherwise none of its calls runs.
	Exclusive bool
	// Repeatable calls may be made again under the same Call.Key: they have one effect, and return its result each time.
	// After the context of a call has ended with ErrInterrupted, Run starts nothing, and ends what an earlier process has
	// started under its key.
	Repeatable bool
	// AtMostOnce calls may have effects that cannot be undone or looked up. A call that an earlier attempt may have made
	// is not made again: see Batch.Again.
	AtMostOnce bool
	// OwnsTimeout means that the tool ends idle calls itself, and Silence does not apply.
	OwnsTimeout bool
	// OwnsApproval means that calls ask for approval themselves, when they know what they would do. They wait for no
	// approval before.
	OwnsApproval bool
	// ProposesPlan means that people approve each call before it succeeds, whatever the policy says. In mode Plan, an
	// approved call ends the mode for the turn.
	ProposesPlan bool
	// AttachesFile means that results come with a file, for which the message must have room: the tool must be Exclusive.
	// Files are not streamed. So a call is made again after a crash even if its result is known: it must be Repeatable.
	AttachesFile bool
	// NeedsWorkspace means that calls run in the workspace of the chat's family, after it is ready.
	NeedsWorkspace bool

	// MayNeedWorkspace reports whether a call with these arguments works in the workspace. Each step must come to the same
	// answer, so it depends on nothing else. nil: see NeedsWorkspace.
	MayNeedWorkspace func(chat *v1beta1.Chat, input string) bool
	// WaitsFor is the sub-chat that a call with these arguments waits for, and for how many seconds; 0: it does not wait.
	// The operator waits, and runs the call afterwards: a chat that waits has no attempt. nil: no call waits.
	WaitsFor func(input string) (chat string, seconds int32)
	// ChangeAgent is the change of a sub-chat that a successful call requests. It must follow from the call alone. The
	// operator makes it once, when it has the result. A lost result changes nothing, so the call must be Repeatable.
	ChangeAgent func(call Call) v1beta1.AgentChange
	// ChangeWorkspace is the change of the workspace that a successful result requests; nil: none. The operator makes it,
	// as with ChangeAgent. The tool must be Exclusive.
	ChangeWorkspace func(result v1beta1.ToolResult) *v1beta1.WorkspaceChange
}

// Use is whether a chat with a mode may call a tool.
type Use int

const (
	// Forbidden means that it may not.
	Forbidden Use = iota
	// WithApproval means that a person approves each call.
	WithApproval
	// Free means that it may.
	Free
)

// In is whether a chat with the mode may call the tool; empty: it has none.
func (t Traits) In(mode v1beta1.ChatMode) Use {
	switch mode {
	case "":
		return Free
	case v1beta1.ModePlan:
		return t.Plan
	case v1beta1.ModeExplore:
		return t.Explore
	}
	return Forbidden
}

// Reference documents a tool for people.
type Reference struct {
	// Offered is to which chats the tool is offered, as the end of a sentence.
	Offered string
	// Result is a value of the struct that a call returns as JSON. The tags json and doc of its fields are shown.
	Result any
	// Errors that the model reads in place of a result; sentences.
	Errors []string
	// Limits of arguments, results and time; sentences.
	Limits []string
}

// OfClient are the tools that a client of the chat runs and that the chat allows, in their order.
func OfClient(spec *v1beta1.ChatTools) (all []Definition) {
	if spec == nil {
		return nil
	}
	for i := range spec.Client {
		if client := &spec.Client[i]; toolpolicy.Allows(spec, client.Name) {
			all = append(all, Definition{Name: client.Name, Description: client.Description, InputSchema: clientSchema(client),
				client: client})
		}
	}
	return all
}

// clientSchema is the schema in the chat, or that of an object without properties.
func clientSchema(client *v1beta1.ClientTool) map[string]any {
	var schema map[string]any
	if raw := client.InputSchema; raw != nil {
		schema, _ = jsonschema.Object(raw.Raw) // SchemaError reports the error.
	}
	if schema == nil {
		schema = map[string]any{}
	}
	if _, ok := schema["type"]; !ok {
		schema["type"] = "object"
	}
	return schema
}

// SchemaError is why a tool of the chat's client cannot be offered; nil: it can. A provider refuses a whole request
// because of one invalid schema.
func (d *Definition) SchemaError() error {
	if d.client == nil || d.client.InputSchema == nil {
		return nil
	}
	if err := jsonschema.Check(string(d.client.InputSchema.Raw)); err != nil {
		return err
	}
	if d.InputSchema["type"] != "object" {
		return errors.New("its type must be object")
	}
	return nil
}
