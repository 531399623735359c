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

type talkArguments struct {
	Chat      string `json:"chat"`
	Message   string `json:"message"`
	Interrupt bool   `json:"interrupt"`
}

type talkResult struct {
	Chat   string `json:"chat" doc:"The agent."`
	Status string `json:"status" doc:"\"sent\", \"interrupted\", or \"idle\" if there is nothing to interrupt."`
}

var (
	chatArgument  = arguments.Text(1, maxName, "The agent.")
	messageSchema = arguments.Object(map[string]any{
		"chat":      chatArgument,
		"message":   arguments.Text(1, v1alpha1.MaxAgentText, "What to say."),
		"interrupt": arguments.Boolean("Whether to stop what the agent does. Default: false."),
	}, "chat", "message")
	interruptSchema = arguments.Object(map[string]any{"chat": chatArgument}, "chat")
)

func (o Options) messageAgent() tools.Tool {
	return tools.New(tools.Definition{
		Name: string(v1alpha1.BuiltInMessageAgent),
		Description: "Says something to an agent of yours: another task, or more about the one that it has. An agent at " +
			"work reads it when it has finished what it does; with interrupt it stops that and reads it at once.",
		InputSchema: messageSchema,
		Traits: tools.Traits{UsefulTo: mayStart, Repeatable: true, ChangeAgent: func(call tools.Call) v1alpha1.AgentChange {
			var args talkArguments
			_ = arguments.Decode(messageSchema, call.Input, &args) // The call has succeeded.
			return v1alpha1.AgentChange{Key: call.Key, Chat: args.Chat,
				Message: &v1alpha1.AgentMessage{Content: args.Message, Interrupts: args.Interrupt}}
		}},
		Reference: tools.Reference{Offered: offered, Result: talkResult{},
			Errors: []string{"There is no such agent below the chat, or it is archived."},
			Limits: []string{"`spec.limits.maxQueue` of the agent's chat bounds what waits there."}},
	}, func(ctx context.Context, call tools.Call, args talkArguments) (string, error) {
		if isBlank(args.Message) {
			return "", errors.New("message is blank: say something")
		}
		agent, err := o.agent(ctx, call.Chat, args.Chat)
		if err != nil {
			return "", err
		}
		return tools.Encode(talkResult{Chat: agent.Name, Status: "sent"})
	})
}

func (o Options) interruptAgent() tools.Tool {
	return tools.New(tools.Definition{
		Name: string(v1alpha1.BuiltInInterruptAgent),
		Description: "Stops what an agent of yours does. It keeps what it has, and can be given another task with " +
			"message_agent.",
		InputSchema: interruptSchema,
		Traits: tools.Traits{UsefulTo: mayStart, Repeatable: true, ChangeAgent: func(call tools.Call) v1alpha1.AgentChange {
			var args talkArguments
			_ = arguments.Decode(interruptSchema, call.Input, &args) // The call has succeeded.
			// An idle chat refuses it, which changes nothing.
			return v1alpha1.AgentChange{Key: call.Key, Chat: args.Chat, Interrupt: &v1alpha1.AgentInterrupt{}}
		}},
		Reference: tools.Reference{Offered: offered, Result: talkResult{},
			Errors: []string{"There is no such agent below the chat, or it is archived."}},
	}, func(ctx context.Context, call tools.Call, args talkArguments) (string, error) {
		agent, err := o.agent(ctx, call.Chat, args.Chat)
		if err != nil {
			return "", err
		}
		status := "interrupted"
		if agent.Status.Phase == v1alpha1.ChatWaiting || agent.Status.Phase == v1alpha1.ChatError {
			status = "idle"
		}
		return tools.Encode(talkResult{Chat: agent.Name, Status: status})
	})
}
