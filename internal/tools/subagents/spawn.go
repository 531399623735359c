// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package subagents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/agents"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/firstwords"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// spawn starts a sub-chat.
type spawn struct{ *common }

// efforts are the values of ReasoningEffort, in the words that models know from their own settings.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// maxName is the most characters that the name of a Kubernetes object has.
const maxName = 253

type spawnArguments struct {
	Type   v1alpha1.AgentType `json:"type"`
	Prompt string             `json:"prompt"`
	Title  string             `json:"title"`
	Config string             `json:"model_config_id"`
	Effort string             `json:"reasoning_effort"`
}

type spawnResult struct {
	Chat  string             `json:"chat" doc:"The agent, for the other tools: the name of its Chat."`
	Title string             `json:"title" doc:"Its title."`
	Type  v1alpha1.AgentType `json:"type" doc:"What it is for."`
	// Status is for models that look for one.
	Status string `json:"status" doc:"\"started\": it begins as soon as there is room."`
}

func (t spawn) Definition() tools.Definition {
	return tools.Definition{
		Name: string(v1alpha1.BuiltInSpawnAgent),
		Description: "Starts an agent: another model with a conversation of its own, which works on the prompt while you " +
			"go on. It sees nothing of this conversation: the prompt must say all that it needs. It shares your workspace, " +
			"and has your tools, but starts no agents. Get its report with wait_agent.",
		InputSchema: arguments.Object(map[string]any{
			"type": arguments.OneOf("general has your tools; explore has only those that change nothing, to find something out.",
				string(v1alpha1.AgentGeneral), string(v1alpha1.AgentExplore)),
			"prompt": arguments.Text(1, v1alpha1.MaxAgentText, "The task, with everything that the agent has to know."),
			"title":  arguments.Text(1, v1alpha1.MaxTitleRunes, "A few words for lists. Default: how the prompt begins."),
			"model_config_id": arguments.Text(1, maxName,
				"Who answers, from list_subagent_models. Default: the model that you are."),
			"reasoning_effort": arguments.OneOf("How much it thinks. Default: what this chat has by default.", efforts...),
		}, "type", "prompt"),
		// In mode Plan it starts agents that explore.
		Traits: tools.Traits{Plan: tools.Free, UsefulTo: suits, Repeatable: true, ChangeAgent: t.change},
		Reference: tools.Reference{Offered: offered, Result: spawnResult{},
			Errors: []string{
				"`model_config_id` is none of list_subagent_models, or cannot be used.",
				"There are as many sub-chats as `spec.limits.maxSubChats` of the chat allows, or `maxDepth` is 0.",
				fmt.Sprintf("More than %d calls of one reply start agents or tell them something: the others are done.",
					v1alpha1.MaxAgentChanges),
			},
			Limits: []string{
				"The chat is a sub-chat of the one that calls, of the same ChatClass and with what that says itself, but for " +
					"`workspace`, which they share, `advisor`, `subAgents` and `tools.client`.",
				"An `explore` agent is a chat in mode Explore. So is each one that a chat in mode Plan starts.",
			}},
	}
}

// Run checks the task.
func (t spawn) Run(ctx context.Context, call tools.Call) (string, error) {
	given, err := t.given(call)
	if err != nil {
		return "", err
	}
	if err := allowed(call.Chat); err != nil {
		return "", err
	}
	if err := t.room(ctx, call); err != nil {
		return "", err
	}
	if given.Config != "" {
		if err := t.answers(ctx, call.Chat, given.Config); err != nil {
			return "", err
		}
	}
	return tools.Encode(spawnResult{
		Chat: agents.Name(call.Chat.Name, call.Key), Title: given.Title, Type: given.Type, Status: "started"})
}

// given are the arguments. A title that would not do in a list is mended, and whatever a chat that plans starts
// explores.
func (t spawn) given(call tools.Call) (given spawnArguments, err error) {
	if err = arguments.Decode(t.Definition().InputSchema, call.Input, &given); err != nil {
		return given, err
	}
	if blank(given.Prompt) {
		return given, fmt.Errorf("prompt is blank: say what the agent has to do")
	}
	title := cmp.Or(strings.TrimSpace(printable.Line(given.Title)), firstwords.OfText(given.Prompt))
	given.Title = clip.Ellipsis(title, v1alpha1.MaxTitleRunes)
	if call.Chat.ModeInForce() != "" {
		given.Type = v1alpha1.AgentExplore
	}
	return given, nil
}

// room is why there may be no other sub-chat; nil if there may. The chat of this very call may be there already.
func (t spawn) room(ctx context.Context, call tools.Call) error {
	spec, name := &call.Chat.Spec, agents.Name(call.Chat.Name, call.Key)
	if spec.MaxDepthOrDefault() == 0 {
		return fmt.Errorf("this chat may have no agents: spec.limits.maxDepth is 0")
	}
	below, err := t.below(ctx, call.Chat)
	if err != nil {
		return err
	}
	below = slices.DeleteFunc(below, func(c v1alpha1.Chat) bool { return c.Name == name })
	if most := int(spec.MaxSubChatsOrDefault()); len(below) >= most {
		return fmt.Errorf("you have %d agents, and may have %d (spec.limits.maxSubChats): give the task to one of them with "+
			"message_agent", len(below), most)
	}
	return nil
}

// answers is why the ChatModelConfig cannot answer an agent; nil if it can.
func (t spawn) answers(ctx context.Context, chat *v1alpha1.Chat, name string) error {
	if !slices.Contains(choices(chat), name) {
		return fmt.Errorf("%q is no model for agents of yours: list_subagent_models has them", name)
	}
	config, err := t.options.Config(ctx, name)
	switch {
	case apierrors.IsNotFound(err) || err == nil && config.Spec.Disabled:
		return fmt.Errorf("model %q cannot be used at the moment: choose another one", name)
	case err != nil:
		return tools.Unread(ctx, "model "+name)
	}
	return nil
}

// change starts the sub-chat.
func (t spawn) change(call tools.Call) v1alpha1.AgentChange {
	given, _ := t.given(call) // It has succeeded.
	change := v1alpha1.AgentChange{Key: call.Key, Chat: agents.Name(call.Chat.Name, call.Key),
		Spawn: &v1alpha1.AgentSpawn{Type: given.Type, Prompt: given.Prompt, Title: given.Title,
			ReasoningEffort: v1alpha1.ReasoningEffortOf(given.Effort)}}
	if given.Config != "" {
		change.Spawn.ModelConfigRef = &v1alpha1.ModelConfigReference{Name: given.Config}
	}
	return change
}
