// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// offeredOwners describes the chats that the tools for the workspace itself are offered to.
const offeredOwners = "chats that have a workspace, not by podRef, and are no sub-chats"

// ownsWorkspace reports whether the chat may start and stop its workspace: that of a sub-chat is its parent's.
func (c *common) ownsWorkspace(chat *v1beta1.Chat) bool {
	own := chat.Spec.Workspace
	return chat.Spec.ParentRef == nil && (own == nil || own.PodRef == nil) && c.hasWorkspace(chat)
}

// start starts the workspace. The operator does that before the call runs.
type start struct{ *common }

type startResult struct {
	Directory string `json:"directory" doc:"Where its files are."`
	OS        string `json:"os" doc:"Its operating system."`
	Arch      string `json:"arch" doc:"Its architecture, as Go calls it."`
	Shell     string `json:"shell,omitempty" doc:"The shell that runs commands; missing if the image has none."`
	Running   int    `json:"running" doc:"How many commands run in it."`
}

func (t start) Definition() tools.Definition {
	return tools.Definition{
		Name: "start_workspace",
		Description: "Starts the workspace of this chat if it does not run, waits until it does, and returns where its " +
			"files are. Every other call that needs the workspace starts it, too.",
		InputSchema: arguments.Object(map[string]any{}),
		Traits: tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: t.ownsWorkspace, Repeatable: true,
			NeedsWorkspace: true},
		Reference: tools.Reference{Offered: offeredOwners, Result: startResult{},
			Errors: []string{"It cannot be started: the error has reason and message of the Workspace's condition Ready."},
			Limits: []string{"The call waits until it is ready, or until only a person can fix it: 5 minutes for a pod."}},
	}
}

func (t start) Run(ctx context.Context, call tools.Call) (string, error) {
	workspace, err := t.begin(ctx, call, t.Definition().InputSchema, &struct{}{})
	if err != nil {
		return "", err
	}
	info, err := workspace.Info(ctx)
	if err != nil {
		return "", Problem(ctx, err)
	}
	return tools.Encode(startResult(*info))
}

// stop stops the workspace. The operator does that when it has the result.
type stop struct{ *common }

type stopResult struct {
	Stopping bool   `json:"stopping" doc:"Always true: everything else is an error."`
	Note     string `json:"note" doc:"What happens next."`
}

func (t stop) Definition() tools.Definition {
	return tools.Definition{
		Name: "stop_workspace",
		Description: "Stops the workspace of this chat: its commands end, and files outside its storage are gone. Call it " +
			"alone, when nothing in it needs to run. The next call that needs the workspace starts it again.",
		InputSchema: arguments.Object(map[string]any{}),
		// Other calls of the same reply would lose their workspace.
		Traits: tools.Traits{UsefulTo: t.ownsWorkspace, Exclusive: true, Repeatable: true, ChangeWorkspace: stopWorkspace},
		Reference: tools.Reference{Offered: offeredOwners, Result: stopResult{},
			Errors: []string{"It was not called alone, or a sub-chat called it."},
			Limits: []string{"Commands have the pod's termination grace period to end."}},
	}
}

func (t stop) Run(_ context.Context, call tools.Call) (string, error) {
	if err := arguments.Decode(t.Definition().InputSchema, call.Input, &struct{}{}); err != nil {
		return "", err
	}
	if !t.ownsWorkspace(call.Chat) {
		return "", errors.New("this chat has no workspace of its own that it could stop")
	}
	return tools.Encode(stopResult{Stopping: true,
		Note: "It stops after this step. The next call that needs it starts it again."})
}

func stopWorkspace(v1beta1.ToolResult) *v1beta1.WorkspaceChange {
	return &v1beta1.WorkspaceChange{Stop: true}
}
