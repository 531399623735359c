// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workspace has the tools for commands and files in the workspace of a chat. They send requests to the agent of
// the workspace, and turn its answers into compact JSON that fits the model's context.
//
// A call has its effect once under its key, so that it may be repeated after a crash. An interrupted chat leaves no
// command behind for which a call waited.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

// Workspaces finds the workspace of a chat.
type Workspaces interface {
	// Of returns a client of the agent in the chat's workspace. It may wait until there is one. The model reads its error.
	Of(ctx context.Context, chat *v1beta1.Chat) (*client.Client, error)
}

// Options of the tools. All are required but Has.
type Options struct {
	Workspaces Workspaces
	// Has reports whether a chat has a workspace. Other chats are offered the tools only if they name them. Default: every
	// chat has one.
	Has func(chat *v1beta1.Chat) bool
	Now func() time.Time
}

// Tools returns all tools.
func Tools(o Options) []tools.Tool {
	own := &common{options: o, timeout: context.WithTimeout}
	return []tools.Tool{
		execute{own}, processOutput{own}, processList{own}, processSignal{own},
		readFile{own}, writeFile{own}, editFiles{own}, searchFiles{own}, attachFile{own}, start{own}, stop{own},
	}
}

// offered describes the chats that the tools are offered to.
const offered = "chats that have a workspace"

// maxPath bounds the characters of a path.
const maxPath = 4096

var pathArgument = arguments.Text(1, maxPath, "The file, relative to the workspace's directory or absolute.")

// common is what the tools share.
type common struct {
	options Options
	// timeout bounds a wait; tests shorten it.
	timeout func(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc)
}

func (c *common) hasWorkspace(chat *v1beta1.Chat) bool {
	return c.options.Has == nil || c.options.Has(chat)
}

// readTraits are those of a tool that only reads.
func (c *common) readTraits() tools.Traits {
	return tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: c.hasWorkspace, Repeatable: true,
		NeedsWorkspace: true}
}

// maxReason bounds the characters of the reason for which there is no workspace.
const maxReason = 2 << 10

// Open returns a client of the agent in the chat's workspace. The error is for the model.
func Open(ctx context.Context, all Workspaces, chat *v1beta1.Chat) (*client.Client, error) {
	workspace, err := all.Of(ctx, chat)
	switch {
	case err == nil:
		return workspace, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case isCode(err, protocol.BoundToAnother):
		return nil, Problem(ctx, err)
	}
	reason := clip.Ellipsis(printable.Line(err.Error()), maxReason)
	return nil, fmt.Errorf("the workspace of this chat cannot be used: %s", reason)
}

// begin decodes the arguments of a call, and opens the workspace.
func (c *common) begin(
	ctx context.Context, call tools.Call, schema arguments.Schema, into any,
) (*client.Client, error) {
	if err := arguments.Decode(schema, call.Input, into); err != nil {
		return nil, err
	}
	return Open(ctx, c.options.Workspaces, call.Chat)
}

// advice for refusals, in addition to the agent's message.
var advice = map[protocol.ErrorCode]string{
	protocol.OutcomeUnknown: "Look whether the change was made before you make it again.",
	protocol.NoSpace:        "Remove what is not needed.",
	protocol.TooMany:        "Wait for a command with process_output, or end one with process_signal.",
	protocol.NoShell:        "Commands cannot be run in this workspace; files can be read and written.",
}

// notForModels are refusals that a model cannot resolve.
var notForModels = map[protocol.ErrorCode]bool{
	protocol.Unauthenticated: true, protocol.Forbidden: true, protocol.Unbound: true,
}

// Problem turns an error of the client into one for the model, without addresses.
func Problem(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if refused, ok := errors.AsType[*protocol.Error](err); ok {
		if refused.Code == protocol.BoundToAnother {
			return fmt.Errorf("the workspace's pod is that of another chat, and refuses to work for this one (%s): "+
				"a person has to name another pod, or to recreate it", refused.Code)
		}
		if notForModels[refused.Code] {
			return fmt.Errorf("the workspace refuses to work for this chat (%s): a person has to look into it", refused.Code)
		}
		message := strings.TrimSuffix(strings.TrimSpace(refused.Message), ".")
		if more := advice[refused.Code]; more != "" {
			return fmt.Errorf("%s (%s). %s", message, refused.Code, more)
		}
		return fmt.Errorf("%s (%s)", message, refused.Code)
	}
	if invalid, ok := errors.AsType[*client.AnswerError](err); ok {
		return fmt.Errorf("%w. The server there is not the workspace's agent, or does not work: a person has to look into it",
			invalid)
	}
	switch {
	case errors.Is(err, client.ErrGone):
		return errors.New("the workspace's pod is gone, and whether this was done is not known; the next call starts the " +
			"workspace again: look before you do it again")
	case errors.Is(err, client.ErrUnreachable):
		return errors.New("the workspace cannot be reached at the moment, and whether this was done is not known; " +
			"try again later")
	}
	return errors.New("no request can be sent to the workspace: a person has to look into it")
}

// isCode reports whether an error is a refusal with a code.
func isCode(err error, code protocol.ErrorCode) bool {
	refused, ok := errors.AsType[*protocol.Error](err)
	return ok && refused.Code == code
}
