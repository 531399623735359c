// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package subagents

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

const (
	// defaultListed is how many agents are listed, maxListed the most.
	defaultListed, maxListed = 10, 50
	maxOffset                = 1000
)

type listArguments struct {
	Limit  int `json:"limit"`
	Offset int `json:"offset"`
}

type agentLine struct {
	Chat      string            `json:"chat" doc:"The agent."`
	Title     string            `json:"title,omitempty" doc:"Its title."`
	Phase     v1beta1.ChatPhase `json:"phase" doc:"The phase of its Chat."`
	Reason    string            `json:"reason,omitempty" doc:"The reason of its condition Ready."`
	LastReply string            `json:"last_reply,omitempty" doc:"How its newest reply begins."`
}

type listResult struct {
	Agents []agentLine `json:"agents" doc:"The agents."`
	Total  int         `json:"total" doc:"How many there are."`
}

func (o Options) listAgents() tools.Tool {
	return tools.New(tools.Definition{
		Name:        string(v1beta1.BuiltInListAgents),
		Description: "Lists your agents, the newest first, and what each is doing. wait_agent has their reports.",
		InputSchema: arguments.Object(map[string]any{
			"limit":  arguments.Integer(1, maxListed, defaultListed, "How many to list."),
			"offset": arguments.Integer(0, maxOffset, 0, "How many to pass over."),
		}),
		Traits: reading,
		Reference: tools.Reference{Offered: offered, Result: listResult{},
			Limits: []string{"Archived ones are left out, and sub-chats that people have created are listed, too."}},
	}, func(ctx context.Context, call tools.Call, args listArguments) (string, error) {
		if err := checkAllowed(call.Chat); err != nil {
			return "", err
		}
		all, err := o.children(ctx, call.Chat)
		if err != nil {
			return "", err
		}
		slices.SortFunc(all, func(a, b v1beta1.Chat) int {
			return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
		result := listResult{Agents: []agentLine{}, Total: len(all)}
		for _, chat := range all[min(args.Offset, len(all)):min(args.Offset+args.Limit, len(all))] {
			line := agentLine{Chat: chat.Name, Title: chat.Status.Title, Phase: chat.Status.Phase,
				LastReply: chat.Status.LastReply}
			if ready := meta.FindStatusCondition(chat.Status.Conditions, v1beta1.ConditionReady); ready != nil {
				line.Reason = ready.Reason
			}
			result.Agents = append(result.Agents, line)
		}
		return tools.Encode(result)
	})
}

type modelLine struct {
	Config   string `json:"model_config_id" doc:"The ChatModelConfig."`
	Model    string `json:"model" doc:"The model, as its provider calls it."`
	Provider string `json:"provider" doc:"The provider."`
	Own      bool   `json:"own,omitempty" doc:"Whether it is the one that answers you, and agents by default."`
}

type modelsResult struct {
	Models []modelLine `json:"models" doc:"The models."`
}

func (o Options) listModels() tools.Tool {
	return tools.New(tools.Definition{
		Name:        string(v1beta1.BuiltInListSubagentModels),
		Description: "Lists the models that may answer agents of yours, for model_config_id of spawn_agent.",
		InputSchema: arguments.Object(map[string]any{}),
		Traits:      reading,
		Reference: tools.Reference{Offered: offered, Result: modelsResult{},
			Limits: []string{"Those of `spec.subAgents.modelConfigs`, and the one that answers the chat. Disabled ones are " +
				"left out."}},
	}, func(ctx context.Context, call tools.Call, _ struct{}) (string, error) {
		if err := checkAllowed(call.Chat); err != nil {
			return "", err
		}
		result := modelsResult{Models: []modelLine{}}
		for i, name := range modelConfigs(call.Chat) {
			config, err := o.modelConfig(ctx, name)
			if err != nil {
				return "", err
			}
			if config != nil {
				result.Models = append(result.Models, modelLine{Config: name, Model: config.Spec.Model,
					Provider: string(config.Spec.Provider), Own: i == 0 && call.Chat.Status.Generation != nil})
			}
		}
		return tools.Encode(result)
	})
}

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
		"message":   arguments.Text(1, v1beta1.MaxAgentText, "What to say."),
		"interrupt": arguments.Boolean("Whether to stop what the agent does. Default: false."),
	}, "chat", "message")
	interruptSchema = arguments.Object(map[string]any{"chat": chatArgument}, "chat")
)

func (o Options) messageAgent() tools.Tool {
	return tools.New(tools.Definition{
		Name: string(v1beta1.BuiltInMessageAgent),
		Description: "Says something to an agent of yours: another task, or more about the one that it has. An agent at " +
			"work reads it when it has finished what it does; with interrupt it stops that and reads it at once.",
		InputSchema: messageSchema,
		Traits: tools.Traits{UsefulTo: mayStart, Repeatable: true, ChangeAgent: func(call tools.Call) v1beta1.AgentChange {
			var args talkArguments
			_ = arguments.Decode(messageSchema, call.Input, &args) // The call has succeeded.
			return v1beta1.AgentChange{Key: call.Key, Chat: args.Chat,
				Message: &v1beta1.AgentMessage{Content: args.Message, Interrupts: args.Interrupt}}
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
		Name: string(v1beta1.BuiltInInterruptAgent),
		Description: "Stops what an agent of yours does. It keeps what it has, and can be given another task with " +
			"message_agent.",
		InputSchema: interruptSchema,
		Traits: tools.Traits{UsefulTo: mayStart, Repeatable: true, ChangeAgent: func(call tools.Call) v1beta1.AgentChange {
			var args talkArguments
			_ = arguments.Decode(interruptSchema, call.Input, &args) // The call has succeeded.
			// An idle chat refuses it, which changes nothing.
			return v1beta1.AgentChange{Key: call.Key, Chat: args.Chat, Interrupt: &v1beta1.AgentInterrupt{}}
		}},
		Reference: tools.Reference{Offered: offered, Result: talkResult{},
			Errors: []string{"There is no such agent below the chat, or it is archived."}},
	}, func(ctx context.Context, call tools.Call, args talkArguments) (string, error) {
		agent, err := o.agent(ctx, call.Chat, args.Chat)
		if err != nil {
			return "", err
		}
		status := "interrupted"
		if agent.Status.Phase == v1beta1.ChatWaiting || agent.Status.Phase == v1beta1.ChatError {
			status = "idle"
		}
		return tools.Encode(talkResult{Chat: agent.Name, Status: status})
	})
}
