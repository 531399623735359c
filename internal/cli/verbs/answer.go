// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/text/compose"
)

func newAnswer(o *options) *cobra.Command {
	digest := ""
	cmd := &cobra.Command{
		Use:   "answer CHAT CALL=JSON [CALL=JSON...]",
		Short: "Send results of calls that wait for a client, or the input that a call asks for",
		Long: "Creates a ChatMessage with role Tool that holds the results, and waits until it is accepted. Answer all " +
			"calls that wait for a client in one command, each with JSON; a text needs quotes of its own. While other calls " +
			"of the same reply wait for approval, results are accepted only once those are decided; --wait=false leaves them " +
			"there meanwhile.\n\nAnswer a call that asks for input alone, with a JSON object. The verb shows the question and " +
			"asks for confirmation, or takes the --digest of the call as approve does. It creates a ToolApproval with that " +
			"content. The beginning or the end of a call's id is enough.",
		Example: "  kubectl chat answer triage call_1='{\"number\": 4711}'\n  kubectl chat answer triage " +
			"call_1='\"done\"' call_2=42",
		Args: cobra.MinimumNArgs(2),
	}
	cmd.Flags().StringVar(&digest, "digest", "", "the digest of the call that you have seen, or its first 12 digits")
	return newAwaited(o, cmd, func(ctx context.Context, s *session, args []string, w waiting) error {
		chat, answers := args[0], args[1:]
		call, content, err := inputCall(ctx, s, chat, answers)
		switch {
		case err != nil:
			return err
		case call == nil:
			return sendResults(ctx, s, chat, answers, w)
		case len(answers) > 1:
			return fmt.Errorf("call %s asks for input: answer it alone", call.ID)
		}
		return sendInput(ctx, s, chat, call, content, digest, w)
	})
}

func sendResults(ctx context.Context, s *session, chat string, args []string, w waiting) error {
	calls, err := pendingCalls(ctx, s, chat, v1beta1.RequiresClient)
	if err != nil {
		return err
	}
	results, err := parseResults(chat, calls, args)
	if err != nil {
		return err
	}
	message, err := s.Messages().Create(ctx, compose.Results(s.Namespace, chat, "", results))
	if err != nil {
		return fmt.Errorf("creating the message: %w", err)
	}
	if !w.wait {
		return s.Say(render.MessagePrefix+message.Name, message, " created")
	}
	message, err = settle(ctx, w, "the results in ChatMessage "+message.Name+" to be accepted", s.Messages().Watch,
		message.Name, func(now *v1beta1.ChatMessage, note func(string)) (bool, error) {
			return cluster.IsReady(now.Status.Conditions, note)
		})
	if err != nil {
		return err
	}
	return s.Say(render.MessagePrefix+message.Name, message, " answers %s: %s", render.NamesOf(calls),
		v1beta1.ReasonResultsAccepted)
}

// parseResults reads CALL=JSON arguments, which must answer each of the calls once.
func parseResults(chat string, calls []v1beta1.PendingToolCall, args []string) ([]v1beta1.ToolResult, error) {
	outputs := map[string]string{}
	for _, arg := range args {
		call, output, err := callIn(calls, arg)
		switch {
		case err != nil:
			return nil, err
		case call == nil:
			return nil, fmt.Errorf("%q answers no call of chat %s that waits for a client: give CALL=JSON for %s", arg, chat,
				render.NamesOf(calls))
		case outputs[call.ID] != "":
			return nil, fmt.Errorf("call %s has two results: give one", call.ID)
		case !json.Valid([]byte(output)):
			return nil, fmt.Errorf("the result of call %s is not JSON: %s; a text needs quotes of its own, such as "+
				"%s='\"done\"'", call.ID, render.OneLine(output), call.ID)
		}
		outputs[call.ID] = output
	}
	var results []v1beta1.ToolResult
	var missing []v1beta1.PendingToolCall
	for _, call := range calls {
		if outputs[call.ID] == "" {
			missing = append(missing, call)
		}
		results = append(results, v1beta1.ToolResult{ID: call.ID, Output: outputs[call.ID]})
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("all calls must be answered at once: %s has no result yet", render.NamesOf(missing))
	}
	return results, nil
}

// callIn finds the call that an argument CALL=OUTPUT names, also by a part of its id; nil if there is none. The id of a
// call may have an equals sign in it.
func callIn(calls []v1beta1.PendingToolCall, arg string) (call *v1beta1.PendingToolCall, output string, err error) {
	for i := range calls {
		if output, found := strings.CutPrefix(arg, calls[i].ID+"="); found {
			return &calls[i], output, nil
		}
	}
	for i := range arg {
		if arg[i] != '=' {
			continue
		}
		if call, err := findCall(calls, arg[:i]); call != nil || err != nil {
			return call, arg[i+1:], err
		}
	}
	return nil, "", nil
}

// inputCall finds the call that asks for input and that the first argument answers, and the answer; nil if it answers
// another call.
func inputCall(ctx context.Context, s *session, chat string, args []string) (*v1beta1.PendingToolCall, string, error) {
	found, err := s.Chat(ctx, chat)
	if err != nil || found.Status.RequiresAction == nil {
		return nil, "", err
	}
	calls := slices.DeleteFunc(found.Status.RequiresAction.ToolCalls, func(c v1beta1.PendingToolCall) bool {
		return c.Kind != v1beta1.RequiresClient && c.ApprovalCause != v1beta1.ApprovalInputRequired
	})
	call, content, err := callIn(calls, args[0])
	if err != nil || call == nil || call.Kind == v1beta1.RequiresClient {
		return nil, "", err
	}
	return call, content, nil
}

// sendInput approves a call with the input that it asks for.
func sendInput(ctx context.Context, s *session, chat string, call *v1beta1.PendingToolCall, text, digest string,
	w waiting) error {
	content := inputObject(call.InputRequests, text)
	object := map[string]any{}
	if json.Unmarshal([]byte(content), &object) != nil {
		return fmt.Errorf("the input for call %s is not a JSON object: %s; give one such as %s='{\"name\": \"x\"}'", call.ID,
			render.OneLine(content), call.ID)
	}
	if _, err := undecidedCall(ctx, s, chat, call.ID); err != nil {
		return err
	}
	if err := reviewCall(s, chat, call, digest, "Answer with "+render.OneLine(content)+"?"); err != nil {
		return err
	}
	spec := v1beta1.ToolApprovalSpec{Decision: v1beta1.DecisionApprove, Content: content}
	return decideCall(ctx, s, chat, call, spec, w)
}

// inputObject returns what a person types as a JSON object. Plain words answer a request for a single text.
func inputObject(requests, typed string) string {
	var asked map[string]render.InputRequest
	if strings.HasPrefix(strings.TrimSpace(typed), "{") || json.Unmarshal([]byte(requests), &asked) != nil {
		return typed
	}
	fields := map[string]render.InputField{}
	for _, request := range asked {
		maps.Copy(fields, request.Params.Schema.Properties)
	}
	for name, field := range fields {
		if len(asked)*len(fields) != 1 || field.Type != "string" {
			break
		}
		text := typed
		if json.Unmarshal([]byte(typed), &text) != nil {
			text = typed
		}
		if raw, err := json.Marshal(map[string]string{name: text}); err == nil {
			return string(raw)
		}
	}
	return typed
}
