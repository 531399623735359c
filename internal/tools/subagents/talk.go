// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package subagents

import (
	"context"
	"errors"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// chatID is the argument that names an agent.
func chatID() map[string]any { return arguments.Text(1, maxName, "The agent.") }

// message says something to a sub-chat.
type message struct{ *common }

type messageArguments struct {
	Chat      string `json:"chat"`
	Message   string `json:"message"`
	Interrupt bool   `json:"interrupt"`
}

type talkResult struct {
	Chat   string `json:"chat" doc:"The agent."`
	Status string `json:"status" doc:"\"sent\", \"interrupted\", or \"idle\" if there is nothing to interrupt."`
}

func (t message) Definition() tools.Definition {
	return tools.Definition{
		Name: string(v1alpha1.BuiltInMessageAgent),
		Description: "Says something to an agent of yours: another task, or more about the one that it has. An agent at " +
			"work reads it when it has finished what it does; with interrupt it stops that and reads it at once.",
		InputSchema: arguments.Object(map[string]any{
			"chat":      chatID(),
			"message":   arguments.Text(1, v1alpha1.MaxAgentText, "What to say."),
			"interrupt": arguments.Boolean("Whether to stop what the agent does. Default: false."),
		}, "chat", "message"),
		Traits: tools.Traits{UsefulTo: suits, Repeatable: true, ChangeAgent: t.change},
		Reference: tools.Reference{Offered: offered, Result: talkResult{},
			Errors: []string{"There is no such agent below the chat, or it is archived."},
			Limits: []string{"`spec.limits.maxQueue` of the agent's chat bounds what waits there."}},
	}
}

// Run checks whom it is for.
func (t message) Run(ctx context.Context, call tools.Call) (string, error) {
	var given messageArguments
	if err := arguments.Decode(t.Definition().InputSchema, call.Input, &given); err != nil {
		return "", err
	}
	if blank(given.Message) {
		return "", errors.New("message is blank: say something")
	}
	agent, err := t.agent(ctx, call.Chat, given.Chat)
	if err != nil {
		return "", err
	}
	return tools.Encode(talkResult{Chat: agent.Name, Status: "sent"})
}

// change says it.
func (t message) change(call tools.Call) v1alpha1.AgentChange {
	var given messageArguments
	_ = arguments.Decode(t.Definition().InputSchema, call.Input, &given) // It has succeeded.
	return v1alpha1.AgentChange{Key: call.Key, Chat: given.Chat,
		Message: &v1alpha1.AgentMessage{Content: given.Message, Interrupts: given.Interrupt}}
}

// interrupt ends the turn of a sub-chat.
type interrupt struct{ *common }

func (t interrupt) Definition() tools.Definition {
	return tools.Definition{
		Name: string(v1alpha1.BuiltInInterruptAgent),
		Description: "Stops what an agent of yours does. It keeps what it has, and can be given another task with " +
			"message_agent.",
		InputSchema: arguments.Object(map[string]any{"chat": chatID()}, "chat"),
		Traits:      tools.Traits{UsefulTo: suits, Repeatable: true, ChangeAgent: t.change},
		Reference: tools.Reference{Offered: offered, Result: talkResult{},
			Errors: []string{"There is no such agent below the chat, or it is archived."}},
	}
}

// Run checks whom it is for.
func (t interrupt) Run(ctx context.Context, call tools.Call) (string, error) {
	name, err := t.given(call.Input)
	if err != nil {
		return "", err
	}
	agent, err := t.agent(ctx, call.Chat, name)
	if err != nil {
		return "", err
	}
	status := "interrupted"
	if agent.Status.Phase == v1alpha1.ChatWaiting || agent.Status.Phase == v1alpha1.ChatError {
		status = "idle"
	}
	return tools.Encode(talkResult{Chat: agent.Name, Status: status})
}

func (t interrupt) given(input string) (string, error) {
	var given struct {
		Chat string `json:"chat"`
	}
	err := arguments.Decode(t.Definition().InputSchema, input, &given)
	return given.Chat, err
}

// change asks for it. A chat at rest refuses, which changes nothing.
func (t interrupt) change(call tools.Call) v1alpha1.AgentChange {
	name, _ := t.given(call.Input) // It has succeeded.
	return v1alpha1.AgentChange{Key: call.Key, Chat: name, Interrupt: &v1alpha1.AgentInterrupt{}}
}
