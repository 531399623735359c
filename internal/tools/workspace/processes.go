// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// maxID bounds the characters of the id of a process.
	maxID = protocol.MaxKeyLength
	// maxListed bounds the processes of a list, and shownCommand the characters of each command.
	maxListed, shownCommand = 50, 200
	// signalWait is how long a call waits for the end of a process after its signal.
	signalWait = 2 * time.Second
)

// isRunning reports whether a process or one of its descendants runs.
func isRunning(p *protocol.Process) bool { return p.State == protocol.Running || p.Descendants != nil }

// stateOf is the state of a process in results.
func stateOf(p *protocol.Process) string {
	if isRunning(p) {
		return "running"
	}
	return strings.ToLower(string(p.State))
}

// descendant is a running descendant of a command.
type descendant struct {
	PID     int    `json:"pid" doc:"Its number in the workspace."`
	Command string `json:"command" doc:"Its words, the beginning if they are long."`
}

// descendants returns the descendants to show, and the number of others.
func descendants(p *protocol.Process) (shown []descendant, more int) {
	if p.Descendants == nil {
		return nil, 0
	}
	for _, d := range p.Descendants.First {
		shown = append(shown, descendant{PID: d.PID, Command: clip.Ellipsis(d.Command, shownCommand)})
	}
	return shown, p.Descendants.Count - len(shown)
}

// descendantsNote lists what still runs of a command that has exited; empty: nothing does.
func descendantsNote(p *protocol.Process) string {
	if p.Descendants == nil {
		return ""
	}
	shown, more := descendants(p)
	var texts []string
	for _, d := range shown {
		texts = append(texts, fmt.Sprintf("%d (%s)", d.PID, d.Command))
	}
	if more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("The command has exited, and what it has started runs on as process %s: %s. "+
		"process_signal ends it.", p.ID, strings.Join(texts, ", "))
}

type processList struct{ *common }

type listedProcess struct {
	ID          string `json:"process_id" doc:"Its name for the other tools."`
	Command     string `json:"command" doc:"The command, its beginning if it is long."`
	State       string `json:"state" doc:"running, also while what it has started does; exited; or lost: by a restart."`
	ExitCode    *int   `json:"exit_code,omitempty" doc:"Its exit code, if it has ended by itself."`
	Signal      string `json:"signal,omitempty" doc:"The signal that ended it."`
	StartedAt   string `json:"started_at" doc:"When it was started, by the workspace's clock."`
	OutputBytes int64  `json:"output_bytes" doc:"How much it has written."`

	Descendants []descendant `json:"descendants,omitempty" doc:"What it has started and still runs, once it has exited."`
	More        int          `json:"more_descendants,omitempty" doc:"How many more descendants there are."`
}

type processListResult struct {
	Processes []listedProcess `json:"processes" doc:"Those that run first, then the newest first."`
	Note      string          `json:"note,omitempty" doc:"How many more there are."`
}

func (t processList) Definition() tools.Definition {
	return tools.Definition{
		Name:        "process_list",
		Description: "Lists the commands of this workspace: those that run, and the last ones that have ended.",
		InputSchema: arguments.Object(map[string]any{}),
		Traits:      t.readTraits(),
		Reference: tools.Reference{
			Offered: offered, Result: processListResult{},
			Limits: []string{
				fmt.Sprintf("%d processes, %d characters of each command, and 10 descendants.", maxListed, shownCommand),
				"Programs of MCP servers ([mcp.md](../how-to/mcp.md#programs-in-the-workspace)) are listed while they run.",
			},
		},
	}
}

func (t processList) Run(ctx context.Context, call tools.Call) (string, error) {
	workspace, err := t.begin(ctx, call, t.Definition().InputSchema, &struct{}{})
	if err != nil {
		return "", err
	}
	all, err := workspace.Processes(ctx)
	if err != nil {
		return "", Problem(ctx, err)
	}
	all = slices.DeleteFunc(all, func(p protocol.Process) bool { return p.Session && !isRunning(&p) })
	slices.SortStableFunc(all, func(a, b protocol.Process) int { return rank(&a) - rank(&b) })
	return tools.Fit(call.Chat, maxListed, func(most int) any {
		result := processListResult{Processes: []listedProcess{}}
		for i := range all[:min(most, len(all))] {
			result.Processes = append(result.Processes, listed(&all[i]))
		}
		if more := len(all) - len(result.Processes); more > 0 {
			result.Note = fmt.Sprintf("There are %d more.", more)
		}
		return result
	})
}

// joinNotes joins the notes that are not empty.
func joinNotes(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), " ")
}

// rank sorts running processes before others.
func rank(p *protocol.Process) int {
	if isRunning(p) {
		return 0
	}
	return 1
}

func listed(p *protocol.Process) listedProcess {
	shown, more := descendants(p)
	return listedProcess{
		ID: p.ID, Command: clip.Ellipsis(printable.Line(p.Command), shownCommand), State: stateOf(p), ExitCode: p.ExitCode,
		Signal: p.Signal, StartedAt: p.StartedAt.UTC().Format(time.RFC3339), OutputBytes: p.OutputBytes,
		Descendants: shown, More: more,
	}
}

type processSignal struct{ *common }

type processSignalResult struct {
	ID       string `json:"process_id" doc:"The process."`
	State    string `json:"state" doc:"running, also while what it has started does; exited; or lost: by a restart."`
	ExitCode *int   `json:"exit_code,omitempty" doc:"Its exit code, if it has ended by itself."`
	Signal   string `json:"signal,omitempty" doc:"The signal that ended it."`
	Note     string `json:"note,omitempty" doc:"What else there is to know, and what to do."`
}

func (t processSignal) Definition() tools.Definition {
	return tools.Definition{
		Name: "process_signal",
		Description: "Sends a signal to a command of this workspace and to all that it has started: terminate asks it to " +
			"end, kill ends it, interrupt is what Ctrl-C does.",
		InputSchema: arguments.Object(map[string]any{
			"process_id": arguments.Text(1, maxID, "The process, from execute or process_list."),
			"signal": arguments.OneOf("What to send.",
				string(protocol.Terminate), string(protocol.Kill), string(protocol.Interrupt)),
		}, "process_id", "signal"),
		Traits: tools.Traits{UsefulTo: t.hasWorkspace, Repeatable: true, NeedsWorkspace: true},
		Reference: tools.Reference{
			Offered: offered, Result: processSignalResult{},
			Errors: []string{"There is no such process. One that has ended is no error: the note says so."},
			Limits: []string{
				fmt.Sprintf("The call waits %d s for the process to end.", int(signalWait.Seconds())),
				"After a restart of the generation pod an interrupt is not sent again, which could end the process without " +
					"cleaning up: the note says that it may have been sent.",
			},
		},
	}
}

func (t processSignal) Run(ctx context.Context, call tools.Call) (string, error) {
	var args struct {
		ID     string          `json:"process_id"`
		Signal protocol.Signal `json:"signal"`
	}
	workspace, err := t.begin(ctx, call, t.Definition().InputSchema, &args)
	if err != nil {
		return "", err
	}
	p, note, err := sendSignal(ctx, workspace, call, args.ID, args.Signal)
	if err == nil {
		p, err = t.awaitProcess(ctx, workspace, call, p, signalWait, p.OutputBytes)
	}
	if err == nil {
		p, err = t.awaitDescendants(ctx, workspace, call, p, signalWait)
	}
	if err != nil {
		return "", Problem(ctx, err)
	}
	if p.State == protocol.Running && note == "" {
		note = "It has not ended yet: process_output waits for that, and the signal kill ends it."
	}
	result := processSignalResult{
		ID: p.ID, State: stateOf(p), ExitCode: p.ExitCode, Signal: p.Signal,
		Note: joinNotes(note, descendantsNote(p), p.Note),
	}
	return tools.Fit(call.Chat, 0, func(int) any { return result })
}

// unknownInterrupt is the note about an interrupt that is not sent a second time.
const unknownInterrupt = "The generation pod was restarted when the interrupt was due, so that it may have been sent " +
	"or not: it is not sent again by itself. Call again if it is still needed."

// sendSignal sends a signal, and returns the process after it with a note for the model. The second interrupt ends many
// programs at once, so that a repeated call sends none.
func sendSignal(ctx context.Context, workspace *client.Client, call tools.Call, id string, signal protocol.Signal) (
	p *protocol.Process, note string, err error) {
	if call.Again && signal == protocol.Interrupt {
		p, err = workspace.Process(ctx, id)
		return p, unknownInterrupt, err
	}
	p, err = workspace.Signal(ctx, id, signal)
	if isCode(err, protocol.NotRunning) {
		note = "It had ended before."
		p, err = workspace.Process(ctx, id)
	}
	return p, note, err
}
