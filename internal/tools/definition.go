// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import "parley.dev/parley/api/v1alpha1"

// Definition is what a tool is: for models, for the registry, and for people.
type Definition struct {
	// Name that the model calls, of letters, digits, _ and -.
	Name string
	// Description tells the model when to call it.
	Description string
	// InputSchema is the JSON schema of the arguments, an object.
	InputSchema map[string]any
	// Traits say to which chats it is offered, and how its calls are run.
	Traits
	// Reference is its section in docs/tools.md. Every built-in tool has one.
	Reference Reference

	// client is what the tool was defined by, if a client of the chat runs it.
	client *v1alpha1.ClientTool
}

// Traits say to which chats a tool is offered, how its calls are approved and run, and what follows from their results.
// Without any, a tool is offered to every chat that has no mode, and its calls run next to others. A new attempt makes
// them again, but a process that resumes an attempt does not.
type Traits struct {
	// Plan and Explore say whether chats in these modes may call the tool. Default: Forbidden.
	Plan, Explore Use
	// EnabledFor reports whether a field of the chat turns the tool on. Other chats cannot call it. nil: no field has to.
	EnabledFor func(chat *v1alpha1.Chat) bool
	// UsefulTo reports whether the chat has a use for the tool. Another chat is offered it only if spec.tools.allow names
	// it. nil: every chat has.
	UsefulTo func(chat *v1alpha1.Chat) bool

	// Exclusive tools must be the only ones that a reply calls. Of a reply that breaks this nothing is run.
	Exclusive bool
	// Repeatable calls may be made again under the same Call.Key: what a call does is done once, and each time it is
	// answered with what came of it. Once the context of a call has ended with ErrInterrupted, Run does not begin it, but
	// ends what an earlier process has begun under its key.
	Repeatable bool
	// AtMostOnce calls may have effects that cannot be undone or looked up. A call that an earlier attempt may have made
	// is not made again: see Batch.Again.
	AtMostOnce bool
	// OwnsTimeout says that the tool ends silent calls itself, so that Silence does not count for them.
	OwnsTimeout bool
	// OwnsApproval says that calls ask for approval themselves, once it is known what they would do. So they wait for no
	// approval before.
	OwnsApproval bool
	// ProposesPlan says that people approve each call before it succeeds, whatever the policy says. In mode Plan, a call
	// that they approve ends the mode for the turn.
	ProposesPlan bool
	// AttachesFile says that results come with a file, for which the message must have room: the tool must be Exclusive.
	// Files are not streamed. So a call is made again after a crash even where its result is known: it must be Repeatable.
	AttachesFile bool
	// NeedsWorkspace says that calls work in the workspace of the chat's family. They are run once that is ready.
	NeedsWorkspace bool

	// MayNeedWorkspace reports whether a call with these arguments works in the workspace. It must depend on nothing else,
	// so that each step comes to the same answer. nil: see NeedsWorkspace.
	MayNeedWorkspace func(chat *v1alpha1.Chat, input string) bool
	// WaitsFor is the sub-chat that a call with these arguments waits for, and for how many seconds; 0: it does not wait.
	// The operator waits, and has the call run afterwards: a chat that waits has no attempt. nil: no call waits.
	WaitsFor func(input string) (chat string, seconds int32)
	// ChangeAgent is what a call that succeeded decides about a sub-chat. It must follow from the call alone. The operator
	// does it, once, when it has the result: so the call must be Repeatable, and decides nothing if its result is lost.
	ChangeAgent func(call Call) v1alpha1.AgentChange
	// ChangeWorkspace is what a result that is no error decides about the workspace of the chat; nil: nothing. The
	// operator does it, as with ChangeAgent. The tool must be Exclusive.
	ChangeWorkspace func(result v1alpha1.ToolResult) *v1alpha1.WorkspaceChange
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
func (t Traits) In(mode v1alpha1.ChatMode) Use {
	switch mode {
	case "":
		return Free
	case v1alpha1.ModePlan:
		return t.Plan
	case v1alpha1.ModeExplore:
		return t.Explore
	}
	return Forbidden
}

// Reference is what people read of a tool: what comes back, what can go wrong, and what bounds it.
type Reference struct {
	// Offered says to which chats the tool is offered, as the end of a sentence.
	Offered string
	// Result is a value of the struct that a call returns as JSON. The tags json and doc of its fields are shown.
	Result any
	// Errors are what the model reads in place of a result; sentences.
	Errors []string
	// Limits are what bounds arguments, results and time; sentences.
	Limits []string
}
