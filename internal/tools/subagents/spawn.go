// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package subagents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/agents"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/firstwords"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

type spawnArguments struct {
	Type   v1beta1.AgentType `json:"type"`
	Prompt string            `json:"prompt"`
	Title  string            `json:"title"`
	Config string            `json:"model_config_id"`
	Effort string            `json:"reasoning_effort"`
}

type spawnResult struct {
	Chat   string            `json:"chat" doc:"The agent, for the other tools: the name of its Chat."`
	Title  string            `json:"title" doc:"Its title."`
	Type   v1beta1.AgentType `json:"type" doc:"What it is for."`
	Status string            `json:"status" doc:"\"started\": it begins as soon as there is room."`
}

var spawnSchema = arguments.Object(map[string]any{
	"type": arguments.OneOf("general has your tools; explore has only those that change nothing, to find something out.",
		string(v1beta1.AgentGeneral), string(v1beta1.AgentExplore)),
	"prompt": arguments.Text(1, v1beta1.MaxAgentText, "The task, with everything that the agent has to know."),
	"title":  arguments.Text(1, v1beta1.MaxTitleRunes, "A few words for lists. Default: how the prompt begins."),
	"model_config_id": arguments.Text(1, maxName,
		"Who answers, from list_subagent_models. Default: the model that you are."),
	// The values of ReasoningEffort, in the words that models know from their own settings.
	"reasoning_effort": arguments.OneOf("How much it thinks. Default: what this chat has by default.",
		"none", "minimal", "low", "medium", "high", "xhigh", "max"),
}, "type", "prompt")

func (o Options) spawnAgent() tools.Tool {
	return tools.New(tools.Definition{
		Name: string(v1beta1.BuiltInSpawnAgent),
		Description: "Starts an agent: another model with a conversation of its own, which works on the prompt while you " +
			"go on. It sees nothing of this conversation: the prompt must say all that it needs. It shares your workspace, " +
			"and has your tools, but starts no agents. Get its report with wait_agent.",
		InputSchema: spawnSchema,
		// In mode Plan it starts agents that explore.
		Traits: tools.Traits{Plan: tools.Free, UsefulTo: mayStart, Repeatable: true, ChangeAgent: spawnChange},
		Reference: tools.Reference{Offered: offered, Result: spawnResult{},
			Errors: []string{
				"`model_config_id` is none of list_subagent_models, or cannot be used.",
				"There are as many sub-chats as `spec.limits.maxSubChats` of the chat allows, or `maxDepth` is 0.",
				fmt.Sprintf("More than %d calls of one reply start agents or tell them something: the others are done.",
					v1beta1.MaxAgentChanges),
			},
			Limits: []string{
				"The chat is a sub-chat of the one that calls, of the same ChatClass and with what that says itself, but for " +
					"`workspace`, which they share, `advisor`, `subAgents` and `tools.client`.",
				"An `explore` agent is a chat in mode Explore. So is each one that a chat in mode Plan starts.",
			}},
	}, func(ctx context.Context, call tools.Call, args spawnArguments) (string, error) {
		if isBlank(args.Prompt) {
			return "", errors.New("prompt is blank: say what the agent has to do")
		}
		if err := o.checkSpawn(ctx, call, args.Config); err != nil {
			return "", err
		}
		task := spawnOf(call, args)
		return tools.Encode(spawnResult{
			Chat: agents.Name(call.Chat.Name, call.Key), Title: task.Title, Type: task.Type, Status: "started"})
	})
}

// checkSpawn returns an error if the chat may have no other sub-chat, or none with the ChatModelConfig. The chat of
// this very call may exist already.
func (o Options) checkSpawn(ctx context.Context, call tools.Call, config string) error {
	if err := checkAllowed(call.Chat); err != nil {
		return err
	}
	spec, name := &call.Chat.Spec, agents.Name(call.Chat.Name, call.Key)
	if spec.MaxDepthOrDefault() == 0 {
		return errors.New("this chat may have no agents: spec.limits.maxDepth is 0")
	}
	children, err := o.children(ctx, call.Chat)
	if err != nil {
		return err
	}
	children = slices.DeleteFunc(children, func(c v1beta1.Chat) bool { return c.Name == name })
	if most := int(spec.MaxSubChatsOrDefault()); len(children) >= most {
		return fmt.Errorf("you have %d agents, and may have %d (spec.limits.maxSubChats): give the task to one of them with "+
			"message_agent", len(children), most)
	}
	if config == "" {
		return nil
	}
	if !slices.Contains(modelConfigs(call.Chat), config) {
		return fmt.Errorf("%q is no model for agents of yours: list_subagent_models has them", config)
	}
	if found, err := o.modelConfig(ctx, config); err != nil || found != nil {
		return err
	}
	return fmt.Errorf("model %q cannot be used at the moment: choose another one", config)
}

// spawnOf is the task of the call, with a title that fits in a list. A chat with a mode starts only agents that
// explore.
func spawnOf(call tools.Call, args spawnArguments) *v1beta1.AgentSpawn {
	title := cmp.Or(strings.TrimSpace(printable.Line(args.Title)), firstwords.OfText(args.Prompt))
	task := &v1beta1.AgentSpawn{Type: args.Type, Prompt: args.Prompt, Title: clip.Ellipsis(title, v1beta1.MaxTitleRunes),
		ReasoningEffort: v1beta1.ReasoningEffortOf(args.Effort)}
	if call.Chat.EffectiveMode() != "" {
		task.Type = v1beta1.AgentExplore
	}
	if args.Config != "" {
		task.ModelConfigRef = &v1beta1.ModelConfigReference{Name: args.Config}
	}
	return task
}

func spawnChange(call tools.Call) v1beta1.AgentChange {
	var args spawnArguments
	_ = arguments.Decode(spawnSchema, call.Input, &args) // The call has succeeded.
	return v1beta1.AgentChange{Key: call.Key, Chat: agents.Name(call.Chat.Name, call.Key), Spawn: spawnOf(call, args)}
}
