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

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/tools"
)

const (
	// maxCall is the timeout of a call that makes progress.
	maxCall = time.Hour
	// maxShown is how many bytes of a progress notification are shown.
	maxShown = 1 << 10
	// metaKey is the member of a call's _meta with its Key.
	metaKey = "parley.dev/call-key"
)

var (
	errSilent  = errors.New("the server gave no sign of life")
	errTooLong = errors.New("the call took too long")
)

// tool is a tool of a server.
type tool struct {
	*definition
	from *source
}

// Definition implements tools.Tool. The hints of a server that is not trusted do not count.
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
	declined := opened.declined.Load()
	result, err := t.call(ctx, opened, call)
	if err != nil {
		return "", err
	}
	if result.NeedsInput() {
		return "", t.ask(result, call)
	}
	answer := readAnswer(raw(result.Meta))
	r := reader{secrets: t.from.endpoint.secrets, call: call}
	text := tools.Truncate(r.text(&answer), maxResult)
	if opened.declined.Load() > declined {
		text += "\n[The server asked people for input while the call ran. That was declined: a server has to speak version " +
			firstStateless + " of the protocol to wait for their answer.]"
	}
	if answer.isFailure() {
		return "", errors.New(text)
	}
	return text, nil
}

// ask asks people for the input that the server requests. The error is tools.ErrAsks, or why no one is asked.
func (t tool) ask(result *sdk.CallToolResult, call tools.Call) error {
	question, err := questionOf(result, t.from.endpoint.secrets)
	switch {
	case err != nil:
		return err
	case !call.Ask(question):
		return fmt.Errorf("the server asks people for input, but for too much at once: at most %d calls of a reply can ask, "+
			"with %d KiB of questions and %d KiB of state each", v1beta1.MaxToolQuestions, v1beta1.MaxInputRequests>>10,
			v1beta1.MaxQuestionState>>10)
	}
	return tools.ErrAsks
}

// call makes the call, until it succeeds, fails or reaches a timeout.
func (t tool) call(ctx context.Context, opened *session, call tools.Call) (result *sdk.CallToolResult, err error) {
	calling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := t.from.server.Timeout()
	silent := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer silent.Stop()
	defer time.AfterFunc(maxCall, func() { cancel(errTooLong) }).Stop()
	token, stop := opened.onProgress(func(p *sdk.ProgressNotificationParams) {
		silent.Reset(silence)
		call.Show(clip.Bytes(t.from.endpoint.secrets.scrub(progressText(p)), maxShown))
	})
	defer stop()
	calling, notes := httpguard.WithNotes(calling, opened.now)
	calling, resumed := withResumption(calling)
	params := &sdk.CallToolParams{Name: t.own, Arguments: json.RawMessage(call.Input), Meta: sdk.Meta{metaKey: call.Key}}
	params.SetProgressToken(token)
	if call.Answer != nil {
		if params.InputResponses, err = responsesTo(call.Answer); err != nil {
			return nil, err
		}
		params.RequestState = call.Answer.State
	}
	if result, err = opened.joined.CallTool(calling, params); err == nil {
		return result, nil
	}
	if refusal := resumed.refusal.Load(); refusal != nil {
		err = refusal
	}
	return nil, t.explain(calling, err, opened, notes)
}

// explain is the error of a call that has no result.
func (t tool) explain(calling context.Context, err error, opened *session, notes *httpguard.Notes) error {
	cause, secrets := context.Cause(calling), t.from.endpoint.secrets
	if message := serverMessage(err); message != "" {
		t.from.servers.forget(t.from.endpoint) // It may have other tools by now.
		return fmt.Errorf("MCP server %s refused the call: %s", t.from.server.Name, scrubLine(message, secrets))
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

// progressText is a progress notification as a line.
func progressText(p *sdk.ProgressNotificationParams) string {
	text := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		text += fmt.Sprintf("/%g", p.Total)
	}
	if p.Message != "" {
		text += " " + p.Message
	}
	return text + "\n"
}

// questionOf makes a question for people from a server's request for input.
func questionOf(result *sdk.CallToolResult, secrets scrubber) (q tools.Question, err error) {
	if len(result.InputRequests) == 0 {
		return q, errors.New("the server is busy: call the tool again later")
	}
	schemas := requestedSchemas(raw(result.Meta))
	for id, request := range result.InputRequests {
		elicit, ok := request.(*sdk.ElicitParams)
		if !ok {
			return q, errors.New("the server asks for a model or for files, which Parley does not offer to servers")
		}
		if schema := schemas[id]; schema != nil {
			elicit.RequestedSchema = schema
		}
	}
	raw, err := json.Marshal(result.InputRequests)
	if err != nil {
		return q, errors.New("the server asks for input that cannot be read")
	}
	if secrets.scrub(result.RequestState) != result.RequestState {
		return q, errors.New("the server asks for input, and would have its own secret kept in the chat: no one was asked")
	}
	return tools.Question{Requests: secrets.scrub(string(raw)), State: result.RequestState}, nil
}

// requestedSchemas are the schemas of the requests by their ids, with numbers as the server wrote them.
func requestedSchemas(result json.RawMessage) map[string]any {
	var r struct {
		InputRequests map[string]struct {
			Params struct {
				RequestedSchema json.RawMessage `json:"requestedSchema"`
			} `json:"params"`
		} `json:"inputRequests"`
	}
	_ = json.Unmarshal(result, &r) // The library has read it.
	schemas := map[string]any{}
	for id, request := range r.InputRequests {
		schemas[id], _ = decode(request.Params.RequestedSchema) // It has none, if that fails.
	}
	return schemas
}

// responsesTo are the responses to the requests of a question. The whole content answers a single request. Its members
// answer several, by their ids.
func responsesTo(answer *tools.Answer) (sdk.InputResponseMap, error) {
	var requests sdk.InputRequestMap
	if err := json.Unmarshal([]byte(answer.Requests), &requests); err != nil {
		return nil, errors.New("what the server asked for can no longer be read")
	}
	var content map[string]any
	if answer.Given && answer.Content != "" {
		value, _ := decode([]byte(answer.Content)) // It is no object, if that fails.
		if content, _ = value.(map[string]any); content == nil {
			return nil, errors.New("the input that a person gave is no JSON object")
		}
	}
	responses := make(sdk.InputResponseMap, len(requests))
	for id := range requests {
		response := &sdk.ElicitResult{Action: "decline"}
		if answer.Given {
			response.Action, response.Content = "accept", content
			if len(requests) > 1 {
				response.Content, _ = content[id].(map[string]any)
			}
		}
		responses[id] = response
	}
	return responses, nil
}
