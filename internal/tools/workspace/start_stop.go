// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// offeredAbove is to which chats the tools for the workspace itself are offered.
const offeredAbove = "chats that have a workspace, not by podRef, and are no sub-chats"

// suitsAbove reports whether the chat may start and stop its workspace: that of a sub-chat is its parent's.
func (c *common) suitsAbove(chat *v1alpha1.Chat) bool {
	own := chat.Spec.Workspace
	return chat.Spec.ParentRef == nil && (own == nil || own.PodRef == nil) && c.Suits(chat)
}

// start starts the workspace: the operator does, before it has the call run.
type start struct{ *common }

// Name is start_workspace.
func (start) Name() string { return "start_workspace" }

// In every mode it may be called: a workspace is where the chat looks.
func (start) In(v1alpha1.ChatMode) tools.Use { return tools.Free }

// Suits a chat that has a workspace of its own.
func (t start) Suits(chat *v1alpha1.Chat) bool { return t.suitsAbove(chat) }

// Description tells the model when to call it.
func (start) Description() string {
	return "Starts the workspace of this chat if it does not run, waits until it does, and returns where its files are. " +
		"Every other call that needs the workspace starts it, too."
}

// InputSchema has no arguments.
func (start) InputSchema() map[string]any { return arguments.Object(map[string]any{}) }

type startResult struct {
	Directory string `json:"directory" doc:"Where its files are."`
	OS        string `json:"os" doc:"Its operating system."`
	Arch      string `json:"arch" doc:"Its architecture, as Go calls it."`
	Shell     string `json:"shell,omitempty" doc:"The shell that runs commands; missing if the image has none."`
	Running   int    `json:"running" doc:"How many commands run in it."`
}

// Reference is what people read of the tool.
func (start) Reference() tools.Reference {
	return tools.Reference{Offered: offeredAbove, Result: startResult{},
		Errors: []string{"It cannot be started: the error has reason and message of the Workspace's condition Ready."},
		Limits: []string{"It is waited for until it is ready, or until only a person can mend it: 5 minutes for a pod."}}
}

// Run asks the agent what it is.
func (t start) Run(ctx context.Context, call tools.Call) (string, error) {
	workspace, err := t.begin(ctx, call, t.InputSchema(), &struct{}{})
	if err != nil {
		return "", err
	}
	info, err := workspace.Info(ctx)
	if err != nil {
		return "", Problem(ctx, err)
	}
	return tools.Encode(startResult{Directory: info.Directory, OS: info.OS, Arch: info.Arch, Shell: info.Shell,
		Running: info.Running})
}

// stop stops the workspace: the operator does, once it has the result.
type stop struct{ own *common }

// Name is stop_workspace.
func (stop) Name() string { return "stop_workspace" }

// Suits a chat that has a workspace of its own.
func (t stop) Suits(chat *v1alpha1.Chat) bool { return t.own.suitsAbove(chat) }

// Exclusive, because calls of the same reply would lose the workspace they work in.
func (stop) Exclusive() {}

// Repeatable, because it only decides.
func (stop) Repeatable() {}

// Description tells the model when to call it.
func (stop) Description() string {
	return "Stops the workspace of this chat: its commands end, and files outside its storage are gone. Call it alone, " +
		"when nothing in it needs to run any more. The next call that needs the workspace starts it again."
}

// InputSchema has no arguments.
func (stop) InputSchema() map[string]any { return arguments.Object(map[string]any{}) }

type stopResult struct {
	Stopping bool   `json:"stopping" doc:"Always true: everything else is an error."`
	Note     string `json:"note" doc:"What happens next."`
}

// Reference is what people read of the tool.
func (stop) Reference() tools.Reference {
	return tools.Reference{Offered: offeredAbove, Result: stopResult{},
		Errors: []string{"It was not called alone, or a sub-chat called it."},
		Limits: []string{"Commands have the pod's termination grace period to end."}}
}

// Run says what is going to happen.
func (t stop) Run(_ context.Context, call tools.Call) (string, error) {
	if err := arguments.Decode(t.InputSchema(), call.Input, &struct{}{}); err != nil {
		return "", err
	}
	if !t.Suits(call.Chat) {
		return "", errors.New("this chat has no workspace of its own that it could stop")
	}
	return tools.Encode(stopResult{Stopping: true,
		Note: "It stops after this step. The next call that needs it starts it again."})
}

// Decision is to stop it.
func (stop) Decision(v1alpha1.ToolResult) *v1alpha1.WorkspaceChange {
	return &v1alpha1.WorkspaceChange{Stop: true}
}
