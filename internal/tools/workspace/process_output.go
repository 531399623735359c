// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"time"

	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/protocol"
)

// defaultWait is how many seconds process_output waits.
const defaultWait = 10

type processOutput struct{ *common }

type processOutputResult struct {
	ID          string `json:"process_id" doc:"The process."`
	State       string `json:"state" doc:"running, also while what it has started does; exited; or lost: by a restart."`
	Output      string `json:"output" doc:"What it has written so far."`
	ExitCode    *int   `json:"exit_code,omitempty" doc:"Its exit code, if it has ended by itself."`
	Signal      string `json:"signal,omitempty" doc:"The signal that ended it."`
	OutputBytes int64  `json:"output_bytes" doc:"How much it has written."`
	Truncated   bool   `json:"truncated,omitempty" doc:"Whether a part of the output was left out."`
	Note        string `json:"note,omitempty" doc:"What else there is to know, and what to do."`
}

func (t processOutput) Definition() tools.Definition {
	return tools.Definition{
		Name: "process_output",
		Description: "Waits until a command of this workspace has ended, at most so long, and returns how it is and what " +
			"it has written. Give it the time that the command needs, instead of calling it again and again.",
		InputSchema: arguments.Object(map[string]any{
			"process_id": arguments.Text(1, maxID, "The process, from execute or process_list."),
			"wait_timeout": arguments.Integer(0, maxTimeout, defaultWait,
				"How many seconds to wait for its end; 0 looks and does not wait."),
		}, "process_id"),
		Traits: t.readTraits(),
		Reference: tools.Reference{
			Offered: offered, Result: processOutputResult{},
			Errors: []string{"There is no such process."},
			Limits: []string{
				"Output is shortened, cleaned and shown live as that of execute is.",
				"A process is not ended when the chat is interrupted while the call waits for it.",
				fmt.Sprintf("Of the output of one process its workspace keeps the first %d MiB and the last %d MiB.",
					protocol.HeadBytes>>20, protocol.TailBytes>>20),
			},
		},
	}
}

func (t processOutput) Run(ctx context.Context, call tools.Call) (string, error) {
	var args struct {
		ID   string `json:"process_id"`
		Wait int    `json:"wait_timeout"`
	}
	workspace, err := t.begin(ctx, call, t.Definition().InputSchema, &args)
	if err != nil {
		return "", err
	}
	began, wait := t.options.Now(), time.Duration(args.Wait)*time.Second
	p, err := workspace.Process(ctx, args.ID)
	if err == nil {
		p, err = t.awaitProcess(ctx, workspace, call, p, wait, max(0, p.OutputBytes-showBytes))
	}
	if err == nil {
		p, err = t.awaitDescendants(ctx, workspace, call, p, wait-t.options.Now().Sub(began))
	}
	if err != nil {
		return "", Problem(ctx, err)
	}
	written, err := readOutput(ctx, workspace, p)
	if err != nil {
		return "", Problem(ctx, err)
	}
	result := processOutputResult{
		ID: p.ID, State: stateOf(p), ExitCode: p.ExitCode, Signal: p.Signal, OutputBytes: p.OutputBytes,
		Note: joinNotes(p.Note, descendantsNote(p)),
	}
	if p.State == protocol.Running {
		result.Note = joinNotes(result.Note,
			"It runs on. A longer wait_timeout waits for its end, process_signal ends it.")
	}
	return tools.Fit(call.Chat, maxOutput, func(most int) any {
		result.Output, result.Truncated = written.shorten(most)
		return result
	})
}
