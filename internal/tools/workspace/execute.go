// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// defaultTimeout and maxTimeout are how many seconds a call waits for a command.
	defaultTimeout, maxTimeout = 10, 14400
	// maxCommand bounds the characters of a command: Linux takes 128 KiB for one argument.
	maxCommand = 32_000
	// startGrace is how long the start of a command may still take after the chat is interrupted.
	startGrace = 2 * time.Second
)

type execute struct{ *common }

type executeResult struct {
	Success    bool   `json:"success" doc:"Whether the command ended with exit code 0, or was started in the background."`
	Output     string `json:"output" doc:"What it has written so far."`
	ExitCode   *int   `json:"exit_code,omitempty" doc:"Its exit code, if it has ended by itself."`
	Signal     string `json:"signal,omitempty" doc:"The signal that ended it, such as SIGKILL."`
	DurationMS int64  `json:"wall_duration_ms" doc:"How long it ran, or was waited for, in milliseconds."`
	Error      string `json:"error,omitempty" doc:"Why there is no exit code."`
	Truncated  bool   `json:"truncated,omitempty" doc:"Whether a part of the output was left out."`
	Note       string `json:"note,omitempty" doc:"What else there is to know, and what to do."`
	Background string `json:"background_process_id,omitempty" doc:"The process that runs on, or what it has started."`
}

func (t execute) Definition() tools.Definition {
	return tools.Definition{
		Name: "execute",
		Description: "Runs a command with sh -c in the workspace of this chat and returns its output, standard output and " +
			"error together. A command that has not ended when the timeout is over continues to run, and the result says how " +
			"to follow it. Servers and other commands that do not end: run them in the background. There is no terminal and " +
			"no input. Files are better read, written, edited and searched with the tools for that.",
		InputSchema: arguments.Object(map[string]any{
			"command": arguments.Text(1, maxCommand, "The command. A & at its end runs it in the background."),
			"timeout": arguments.Integer(1, maxTimeout, defaultTimeout,
				"How many seconds to wait for its end. The command is not ended when they are over."),
			"workdir": arguments.Text(1, maxPath,
				"Directory to run it in, absolute or relative to the workspace's directory, which is "+
					"the default. Give it instead of cd."),
			"run_in_background": arguments.Boolean("Whether to return at once while the command runs on."),
		}, "command"),
		// It is not known what commands change, so people approve them in mode Plan.
		Traits: tools.Traits{Plan: tools.WithApproval, UsefulTo: t.hasWorkspace, Repeatable: true, NeedsWorkspace: true},
		Reference: tools.Reference{
			Offered: offered, Result: executeResult{},
			Errors: []string{
				"A command that fails is no error: success is false, and exit_code says how it ended.",
				"Nor is it one if the workspace stops answering while the command runs: the result names the process.",
				"The workspace's image has no shell, the directory does not exist, or as many commands run as may.",
			},
			Limits: []string{
				fmt.Sprintf("Of the output the first two thirds and the last third of %d KiB are returned, less for a model "+
					"with a small context; progress lines are reduced to their last state, escape sequences of terminals are "+
					"left out, and what is no UTF-8 becomes U+FFFD.", maxOutput>>10),
				fmt.Sprintf("While the command runs its output is shown live, %d KiB at once and at most every %d ms, ever less "+
					"often, and %d KiB in all.", showBytes>>10, showPause.Milliseconds(), maxShown>>10),
				"A command whose chat is interrupted or deleted while the call waits for it gets SIGTERM, and SIGKILL half a " +
					"second later. One in the background runs on.",
				"Variables tell commands that they run without a terminal: they use no pager, no editor and no colours.",
			},
		},
	}
}

type executeArguments struct {
	Command    string `json:"command"`
	Timeout    int    `json:"timeout"`
	Workdir    string `json:"workdir"`
	Background bool   `json:"run_in_background"`
}

func (t execute) decode(input string) (executeArguments, error) {
	var args executeArguments
	if err := arguments.Decode(t.Definition().InputSchema, input, &args); err != nil {
		return args, err
	}
	command, background := inBackground(args.Command)
	if strings.TrimSpace(command) == "" || strings.ContainsRune(command, 0) {
		return args, errors.New("the call was not made: command is empty or has a NUL; give a command for sh -c")
	}
	args.Command, args.Background = command, args.Background || background
	return args, nil
}

func (t execute) Run(ctx context.Context, call tools.Call) (string, error) {
	args, err := t.decode(call.Input)
	if err != nil {
		return "", err
	}
	began := t.options.Now()
	workspace, p, err := t.start(ctx, call, protocol.StartRequest{Command: args.Command, Dir: args.Workdir})
	if err != nil {
		return "", err
	}
	if args.Background {
		return backgroundResult(call, p)
	}
	last, err := t.awaitProcess(ctx, workspace, call, p, time.Duration(args.Timeout)*time.Second, 0)
	switch {
	case tools.Interrupted(ctx) && (err != nil || last.State == protocol.Running):
		return t.interrupted(ctx, workspace, call, p, began)
	case err != nil:
		return t.lost(ctx, call, p, began, err)
	}
	r := executeResult{DurationMS: t.duration(last, began)}
	if last.State == protocol.Running {
		r.Error = fmt.Sprintf("the command has not ended within %d s", args.Timeout)
	}
	return t.result(context.WithoutCancel(ctx), workspace, call, last, r)
}

// start starts the command. If the chat is interrupted, it returns the process of a former attempt instead.
func (t execute) start(
	ctx context.Context, call tools.Call, r protocol.StartRequest,
) (*client.Client, *protocol.Process, error) {
	if ctx.Err() != nil {
		return t.findStarted(ctx, call)
	}
	workspace, err := Open(ctx, t.options.Workspaces, call.Chat)
	if err != nil {
		return nil, nil, err
	}
	// An interrupt waits for the start, so that it is known whether there is a command to end.
	starting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		defer cancel()
		_ = retry.Sleep(starting, startGrace)
	})
	defer stop()
	p, err := workspace.Start(starting, call.Key, r)
	switch {
	case err == nil:
		return workspace, p, nil
	case tools.Interrupted(ctx):
		return t.findStarted(ctx, call)
	}
	return nil, nil, Problem(ctx, err)
}

// findStarted returns the process that a former attempt of an interrupted call has started.
func (t execute) findStarted(ctx context.Context, call tools.Call) (*client.Client, *protocol.Process, error) {
	if !tools.Interrupted(ctx) {
		return nil, nil, ctx.Err()
	}
	finding, cancel := context.WithTimeout(context.WithoutCancel(ctx), findTimeout)
	defer cancel()
	workspace, err := Open(finding, t.options.Workspaces, call.Chat)
	if err != nil {
		return nil, nil, err
	}
	p, err := findByKey(finding, workspace, call.Key)
	switch {
	case err != nil:
		return nil, nil, Problem(finding, err)
	case p == nil:
		return nil, nil, ctx.Err()
	}
	return workspace, p, nil
}

// backgroundResult is the result of a command in the background.
func backgroundResult(call tools.Call, p *protocol.Process) (string, error) {
	result := executeResult{Success: true, Background: p.ID}
	result.Note = fmt.Sprintf("The command runs in the background as process %s. %s", p.ID, nextSteps)
	if !isRunning(p) {
		result.Note = fmt.Sprintf("The command was process %s and has ended. process_output returns what it wrote.", p.ID)
	}
	return tools.Fit(call.Chat, 0, func(int) any { return result })
}

// nextSteps tells what to do with a running command.
const nextSteps = "process_output waits for it and returns its output, process_signal ends it."

// result completes the result of a command.
func (t execute) result(
	ctx context.Context, workspace *client.Client, call tools.Call, p *protocol.Process, r executeResult,
) (string, error) {
	r.ExitCode, r.Signal, r.Note = p.ExitCode, p.Signal, p.Note
	r.Success = p.State == protocol.Exited && p.ExitCode != nil && *p.ExitCode == 0
	switch {
	case r.Error != "":
	case p.State == protocol.Lost:
		r.Error = "the workspace was restarted while the command ran, which ended it"
	case p.Signal != "":
		r.Error = "the command was ended by " + p.Signal
	}
	if p.Descendants != nil {
		r.Background, r.Note = p.ID, joinNotes(r.Note, descendantsNote(p))
	}
	if p.State == protocol.Running {
		r.Background = p.ID
		r.Note = joinNotes(r.Note, fmt.Sprintf("It runs on as process %s. %s", p.ID, nextSteps))
	}
	written, err := readOutput(ctx, workspace, p)
	if err != nil {
		r.Note = joinNotes(r.Note,
			"Its output could not be read: process_output for process "+p.ID+" may return it later.")
		written = &output{}
	}
	return tools.Fit(call.Chat, maxOutput, func(most int) any {
		r.Output, r.Truncated = written.shorten(most)
		return r
	})
}

// interrupted ends the command of an interrupted chat.
func (t execute) interrupted(
	ctx context.Context, workspace *client.Client, call tools.Call, p *protocol.Process, began time.Time,
) (string, error) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	r := executeResult{Error: "the chat was interrupted, and the command was ended"}
	last, err := t.end(ending, workspace, p.ID)
	switch {
	case err != nil:
		r.DurationMS = t.duration(p, began)
		r.Error = "the chat was interrupted, and whether the command was ended is not known"
		r.Background = p.ID
		return tools.Fit(call.Chat, 0, func(int) any { return r })
	case last.State == protocol.Running:
		r.Error = "the chat was interrupted, and the command did not end although it was killed"
	}
	r.DurationMS = t.duration(last, began)
	return t.result(ending, workspace, call, last, r)
}

// lost is the result of a command whose workspace became unreachable, or does not answer until the idle timeout of the
// call. It names the process, so that the model does not start the command a second time.
func (t execute) lost(
	ctx context.Context, call tools.Call, p *protocol.Process, began time.Time, err error,
) (string, error) {
	problem := ""
	switch {
	case tools.TimedOut(ctx):
		problem = fmt.Sprintf("the workspace has not answered for %s", tools.Silence)
	case ctx.Err() != nil:
		return "", ctx.Err()
	default:
		problem = Problem(ctx, err).Error()
	}
	r := executeResult{DurationMS: t.duration(p, began), Background: p.ID, Error: problem,
		Note: fmt.Sprintf("The command was started as process %s and may still run. %s", p.ID, nextSteps)}
	if errors.Is(err, client.ErrGone) {
		r.Background, r.Error = "", "the workspace's pod was lost while the command ran, and what became of it is not known"
		r.Note = fmt.Sprintf("It was process %s. The next call starts the workspace again: look there how far it came.", p.ID)
	}
	return tools.Fit(call.Chat, 0, func(int) any { return r })
}

// duration of a command in milliseconds: by the workspace's clock if it has ended, and else by this one.
func (t execute) duration(p *protocol.Process, began time.Time) int64 {
	if p.EndedAt.IsZero() || p.StartedAt.IsZero() {
		return t.options.Now().Sub(began).Milliseconds()
	}
	return max(0, p.EndedAt.Sub(p.StartedAt).Milliseconds())
}

// inBackground removes a trailing & from a command, and reports whether there was one. Parts of &&, quoted texts and
// comments do not count.
func inBackground(command string) (rest string, background bool) {
	trimmed := strings.TrimRight(command, " \t\r\n")
	rest, found := strings.CutSuffix(trimmed, "&")
	joined := rest != "" && strings.IndexByte("&|;<>", rest[len(rest)-1]) >= 0
	if !found || joined || !isUnquoted(rest) {
		return command, false
	}
	return strings.TrimRight(rest, " \t\r\n"), true
}

// isUnquoted reports whether the next character of a shell's text is neither quoted nor in a comment.
func isUnquoted(text string) bool {
	l := lexer{begins: true}
	for i := range len(text) {
		l.take(text[i])
	}
	return l.quote == 0 && !l.escaped
}

// lexer reads quotes and comments of a shell's text.
type lexer struct {
	// quote is the current quotation mark or backquote, # in a comment, 0 outside of them.
	quote byte
	// escaped is set after a backslash, begins where a word can begin.
	escaped, begins bool
}

func (l *lexer) take(c byte) {
	switch {
	case l.quote == '#':
		if c == '\n' {
			l.quote = 0
		}
	case l.escaped:
		l.escaped = false
		l.begins = false
		return
	case c == '\\' && l.quote != '\'':
		l.escaped = true
	case l.quote == c:
		l.quote = 0
	case l.quote == 0 && l.quotes(c):
		l.quote = c
	}
	l.begins = l.quote == 0 && strings.IndexByte(" \t\r\n;&|()", c) >= 0
}

// quotes reports whether a character begins a quoted text or a comment.
func (l *lexer) quotes(c byte) bool { return strings.IndexByte("'\"`", c) >= 0 || c == '#' && l.begins }
