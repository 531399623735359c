// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/clip"
	"parley.dev/parley/internal/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// maxID is how many characters the id of a process may have.
	maxID = protocol.MaxKeyLength
	// maxListed is how many processes a list has.
	maxListed = 50
	// shownCommand is how many characters of a command a list has.
	shownCommand = 200
	// settle is how long a process that got a signal has to end before the call answers.
	settle = 2 * time.Second
)

// state is how a process is, in the words that tools use.
func state(p *protocol.Process) string { return strings.ToLower(string(p.State)) }

// processList lists commands.
type processList struct{ *common }

// Name is process_list.
func (processList) Name() string { return "process_list" }

// In every mode it may be called: it changes nothing.
func (processList) In(v1alpha1.ChatMode) tools.Use { return tools.Free }

// Description tells the model when to call it.
func (processList) Description() string {
	return "Lists the commands of this workspace: those that run, and the last ones that have ended."
}

// InputSchema has no arguments.
func (processList) InputSchema() map[string]any { return arguments.Object(map[string]any{}) }

// listed is a process in a list.
type listed struct {
	ID          string `json:"process_id" doc:"Its name for the other tools."`
	Command     string `json:"command" doc:"The command, its beginning if it is long."`
	State       string `json:"state" doc:"running, exited, or lost: ended by a restart of the workspace."`
	ExitCode    *int   `json:"exit_code,omitempty" doc:"Its exit code, if it has ended by itself."`
	Signal      string `json:"signal,omitempty" doc:"The signal that ended it."`
	StartedAt   string `json:"started_at" doc:"When it was started, by the workspace's clock."`
	OutputBytes int64  `json:"output_bytes" doc:"How much it has written."`
}

type processListResult struct {
	Processes []listed `json:"processes" doc:"Those that run first, then the newest first."`
	Note      string   `json:"note,omitempty" doc:"How many more there are."`
}

// Reference is what people read of the tool.
func (processList) Reference() tools.Reference {
	return tools.Reference{
		Offered: offered, Result: processListResult{},
		Limits: []string{fmt.Sprintf("%d processes, and %d characters of each command.", maxListed, shownCommand),
			"Programs of MCP servers ([mcp.md](mcp.md#programs-in-the-workspace)) are listed while they run."},
	}
}

// Run lists the commands.
func (t processList) Run(ctx context.Context, call tools.Call) (string, error) {
	workspace, err := t.begin(ctx, call, t.InputSchema(), &struct{}{})
	if err != nil {
		return "", err
	}
	all, err := workspace.Processes(ctx)
	if err != nil {
		return "", Problem(ctx, err)
	}
	all = slices.DeleteFunc(all, func(p protocol.Process) bool { return p.Session && p.State != protocol.Running })
	slices.SortStableFunc(all, func(a, b protocol.Process) int { return rank(&a) - rank(&b) })
	return tools.Fit(call.Chat, maxListed, func(most int) any {
		result := processListResult{Processes: []listed{}}
		for i := range all[:min(most, len(all))] {
			result.Processes = append(result.Processes, entry(&all[i]))
		}
		if more := len(all) - len(result.Processes); more > 0 {
			result.Note = fmt.Sprintf("There are %d more.", more)
		}
		return result
	})
}

// rank sorts processes that run before others.
func rank(p *protocol.Process) int {
	if p.State == protocol.Running {
		return 0
	}
	return 1
}

func entry(p *protocol.Process) listed {
	return listed{
		ID: p.ID, Command: clip.Ellipsis(printable.Line(p.Command), shownCommand), State: state(p), ExitCode: p.ExitCode,
		Signal: p.Signal, StartedAt: p.StartedAt.UTC().Format(time.RFC3339), OutputBytes: p.OutputBytes,
	}
}

// processSignal ends commands.
type processSignal struct{ *common }

// Name is process_signal.
func (processSignal) Name() string { return "process_signal" }

// Description tells the model when to call it.
func (processSignal) Description() string {
	return "Sends a signal to a command of this workspace and to all that it has started: terminate asks it to end, " +
		"kill ends it, interrupt is what Ctrl-C does."
}

// InputSchema has the process and the signal.
func (processSignal) InputSchema() map[string]any {
	return arguments.Object(map[string]any{
		"process_id": arguments.Text(1, maxID, "The process, from execute or process_list."),
		"signal": arguments.OneOf("What to send.",
			string(protocol.Terminate), string(protocol.Kill), string(protocol.Interrupt)),
	}, "process_id", "signal")
}

type processSignalResult struct {
	ID       string `json:"process_id" doc:"The process."`
	State    string `json:"state" doc:"running, exited, or lost: ended by a restart of the workspace."`
	ExitCode *int   `json:"exit_code,omitempty" doc:"Its exit code, if it has ended by itself."`
	Signal   string `json:"signal,omitempty" doc:"The signal that ended it."`
	Note     string `json:"note,omitempty" doc:"What else there is to know, and what to do."`
}

// Reference is what people read of the tool.
func (processSignal) Reference() tools.Reference {
	return tools.Reference{
		Offered: offered, Result: processSignalResult{},
		Errors: []string{"There is no such process. One that has ended is no error: the note says so."},
		Limits: []string{fmt.Sprintf("The call waits %d s for the process to end.", int(settle.Seconds()))},
	}
}

// Run sends the signal.
func (t processSignal) Run(ctx context.Context, call tools.Call) (string, error) {
	var given struct {
		ID     string          `json:"process_id"`
		Signal protocol.Signal `json:"signal"`
	}
	workspace, err := t.begin(ctx, call, t.InputSchema(), &given)
	if err != nil {
		return "", err
	}
	note := ""
	p, err := workspace.Signal(ctx, given.ID, given.Signal)
	if isCode(err, protocol.NotRunning) {
		note = "It had ended before."
		p, err = workspace.Process(ctx, given.ID)
	}
	if err == nil {
		p, err = t.attend(ctx, workspace, call, p, settle, p.OutputBytes)
	}
	if err != nil {
		return "", Problem(ctx, err)
	}
	if p.State == protocol.Running {
		note = "It has not ended yet: process_output waits for that, and the signal kill ends it."
	}
	result := processSignalResult{
		ID: p.ID, State: state(p), ExitCode: p.ExitCode, Signal: p.Signal, Note: strings.TrimSpace(note + " " + p.Note),
	}
	return tools.Fit(call.Chat, 0, func(int) any { return result })
}
