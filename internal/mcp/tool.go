// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/tools"
)

const (
	// maxCall is how long a call may take, whatever progress it makes: an hour.
	maxCall = time.Hour
	// maxShown is how many bytes of one notice of progress are shown: 1 KiB.
	maxShown = 1 << 10
	// metaKey is where a call's key stands in its _meta: the same when the call is made again.
	metaKey = "parley.dev/call-key"
)

var (
	errSilent  = errors.New("the server gave no sign of life")
	errTooLong = errors.New("the call took too long")
)

// tool is a tool of a server. It ends by itself what is silent for too long.
type tool struct {
	*definition
	from *source
}

// Definition implements tools.Tool. Only a trusted server says what its tools do: that they only read, or do nothing
// twice.
func (t tool) Definition() tools.Definition {
	trusted := t.from.server.Trusted
	d := tools.Definition{Name: t.name, Description: t.description, InputSchema: t.schema, Traits: tools.Traits{
		Plan: tools.WithApproval, Repeatable: trusted && t.repeatable, AtMostOnce: !trusted || !t.repeatable,
		OwnsTimeout: true, NeedsWorkspace: len(t.from.server.Command) > 0,
	}}
	if trusted && t.readOnly {
		d.Plan, d.Explore = tools.Free, tools.Free
	}
	return d
}

// Run implements tools.Tool.
func (t tool) Run(ctx context.Context, call tools.Call) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	opened, err := t.from.session(ctx)
	if err != nil {
		return "", fmt.Errorf("the call was not made, because MCP server %s cannot be used: %w", t.from.server.Name, err)
	}
	refused := opened.asking()
	result, err := t.call(ctx, opened, call)
	if err != nil {
		return "", err
	}
	if result.NeedsInput() {
		return "", t.ask(result, call)
	}
	answer := readAnswer(raw(result.Meta))
	said := reading{secrets: t.from.endpoint.secrets, call: call}
	text := tools.Truncate(said.text(&answer), maxResult) + refused()
	if answer.failed() {
		return "", errors.New(text)
	}
	return text, nil
}

// ask asks people what the server wants to know. The error is tools.ErrAsks, or why nobody can be asked.
func (t tool) ask(result *sdk.CallToolResult, call tools.Call) error {
	question, err := asked(result, t.from.endpoint.secrets)
	switch {
	case err != nil:
		return err
	case !call.Ask(question):
		return fmt.Errorf("the server asks people for input, but for too much at once: at most %d calls of a reply can ask, "+
			"with %d KiB of questions and %d KiB of state each", v1alpha1.MaxToolQuestions, v1alpha1.MaxInputRequests>>10,
			v1alpha1.MaxQuestionState>>10)
	}
	return tools.ErrAsks
}

// call makes the call, for as long as the server gives signs of life. The error tells the model what is known of it.
func (t tool) call(ctx context.Context, opened *session, call tools.Call) (result *sdk.CallToolResult, err error) {
	calling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := t.from.server.Timeout()
	silent := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer silent.Stop()
	defer time.AfterFunc(maxCall, func() { cancel(errTooLong) }).Stop()
	token, stop := opened.expectProgress(func(p *sdk.ProgressNotificationParams) {
		silent.Reset(silence)
		call.Show(clip.Bytes(t.from.endpoint.secrets.scrub(progressText(p)), maxShown))
	})
	defer stop()
	calling, notes := httpguard.WithNotes(calling, opened.now)
	params := &sdk.CallToolParams{Name: t.own, Arguments: json.RawMessage(call.Input), Meta: sdk.Meta{metaKey: call.Key}}
	params.SetProgressToken(token)
	if call.Answer != nil {
		if params.InputResponses, err = answered(call.Answer); err != nil {
			return nil, err
		}
		params.RequestState = call.Answer.State
	}
	if result, err = opened.joined.CallTool(calling, params); err == nil {
		return result, nil
	}
	return nil, t.explain(calling, err, opened, notes)
}

// explain is what the model reads of a call that has no result.
func (t tool) explain(calling context.Context, err error, opened *session, notes *httpguard.Notes) error {
	cause, secrets := context.Cause(calling), t.from.endpoint.secrets
	if said := saidIn(err); said != "" {
		t.from.servers.forget(t.from.endpoint) // It may have other tools by now.
		return fmt.Errorf("MCP server %s refused the call: %s", t.from.server.Name, scrubLine(said, secrets))
	}
	const unknown = "; whether the call was done is not known"
	switch {
	case errors.Is(cause, errSilent):
		return fmt.Errorf("MCP server %s gave no sign of life for %s%s", t.from.server.Name, t.from.server.Timeout(), unknown)
	case errors.Is(cause, errTooLong):
		return fmt.Errorf("the call timed out after %s%s", maxCall, unknown)
	case cause != nil:
		return cause
	}
	t.from.servers.forget(t.from.endpoint)
	return fmt.Errorf("the result of MCP server %s did not come: %s%s", t.from.server.Name,
		opened.line.failure(calling, err, notes, secrets).words, unknown)
}

// progressText is a notice of progress in a line.
func progressText(p *sdk.ProgressNotificationParams) string {
	counted := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		counted += fmt.Sprintf("/%g", p.Total)
	}
	if p.Message != "" {
		counted += " " + p.Message
	}
	return counted + "\n"
}
