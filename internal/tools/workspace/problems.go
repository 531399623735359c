// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

// advice is what to do about a refusal, besides what the agent says.
var advice = map[protocol.ErrorCode]string{
	protocol.OutcomeUnknown: "Look whether the change was made before you make it again.",
	protocol.NoSpace:        "Remove what is not needed.",
	protocol.TooMany:        "Wait for a command with process_output, or end one with process_signal.",
	protocol.NoShell:        "Commands cannot be run in this workspace; files can be read and written.",
}

// notForModels are refusals that a model can do nothing about.
var notForModels = map[protocol.ErrorCode]bool{
	protocol.Unauthenticated: true, protocol.Forbidden: true, protocol.Unbound: true,
}

// Problem is an error of the client as the model reads it, without addresses.
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
	if strange, ok := errors.AsType[*client.AnswerError](err); ok {
		return fmt.Errorf("%w. What answers there is not the workspace's agent, or not as it should be: "+
			"a person has to look into it", strange)
	}
	if errors.Is(err, client.ErrGone) {
		return errors.New("the workspace's pod is gone, and whether this was done is not known; the next call starts the " +
			"workspace again: look before you do it again")
	}
	if errors.Is(err, client.ErrUnreachable) {
		return errors.New("the workspace cannot be reached at the moment, and whether this was done is not known; " +
			"try again later")
	}
	return errors.New("the workspace cannot be asked: a person has to look into it")
}

// isCode reports whether an error is a refusal of that kind.
func isCode(err error, code protocol.ErrorCode) bool {
	refused, ok := errors.AsType[*protocol.Error](err)
	return ok && refused.Code == code
}
