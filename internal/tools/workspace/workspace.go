// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workspace holds the tools by which a model works in the workspace of its chat: commands and files. They do
// nothing themselves. The agent of the workspace does, and this package asks it, waits for it, and makes of its answers
// what a model can read: compact JSON, shortened to what the model has room for.
//
// What a call does is done once under its key, so that a call may be made again after a crash. An interrupted chat
// leaves no command of a call behind that waited for it.
package workspace

import (
	"context"
	"fmt"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

// Workspaces find the workspace of a chat.
type Workspaces interface {
	// Of returns a client of the agent in the chat's workspace. It may wait until there is one. Its error is told to the
	// model in its own words.
	Of(ctx context.Context, chat *v1alpha1.Chat) (*client.Client, error)
}

// Options of the tools. All are required but Has.
type Options struct {
	// Workspaces of the chats.
	Workspaces Workspaces
	// Has reports whether a chat has a workspace: the model of another one is not told of the tools, unless the chat
	// names them. Default: every chat has.
	Has func(chat *v1alpha1.Chat) bool
	// Now returns the current time.
	Now func() time.Time
}

// Tools are all of them.
func Tools(o Options) []tools.Tool {
	own := &common{options: o, timeout: context.WithTimeout}
	return []tools.Tool{
		execute{own}, processOutput{own}, processList{own}, processSignal{own},
		readFile{own}, writeFile{own}, editFiles{own}, searchFiles{own}, attachFile{own}, start{own}, stop{own},
	}
}

// offered is to which chats the tools are offered.
const offered = "chats that have a workspace"

// common is what the tools share.
type common struct {
	options Options
	// timeout bounds a wait; tests have other clocks.
	timeout func(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc)
}

// suits reports whether the chat has a workspace.
func (c *common) suits(chat *v1alpha1.Chat) bool { return c.options.Has == nil || c.options.Has(chat) }

// maxWhy is how many characters the model reads of why there is no workspace.
const maxWhy = 2 << 10

// of is the workspace of the chat that calls.
func (c *common) of(ctx context.Context, call tools.Call) (*client.Client, error) {
	return Open(ctx, c.options.Workspaces, call.Chat)
}

// Open is a client of the agent in the chat's workspace. The error is for the model.
func Open(ctx context.Context, all Workspaces, chat *v1alpha1.Chat) (*client.Client, error) {
	workspace, err := all.Of(ctx, chat)
	switch {
	case err == nil:
		return workspace, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case isCode(err, protocol.BoundToAnother): // It says who has to do what.
		return nil, Problem(ctx, err)
	}
	why := clip.Ellipsis(printable.Line(err.Error()), maxWhy)
	return nil, fmt.Errorf("the workspace of this chat cannot be used: %s", why)
}

// begin decodes the arguments of a call and finds the workspace.
func (c *common) begin(
	ctx context.Context, call tools.Call, schema arguments.Schema, into any,
) (*client.Client, error) {
	if err := arguments.Decode(schema, call.Input, into); err != nil {
		return nil, err
	}
	return c.of(ctx, call)
}
