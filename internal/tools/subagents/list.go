// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package subagents

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// list tells how the sub-chats stand.
type list struct{ *common }

const (
	// defaultListed is how many agents are listed, maxListed the most.
	defaultListed, maxListed = 10, 50
	// maxOffset is the most that can be passed over.
	maxOffset = 1000
)

type agentLine struct {
	Chat   string             `json:"chat" doc:"The agent."`
	Title  string             `json:"title,omitempty" doc:"Its title."`
	Phase  v1alpha1.ChatPhase `json:"phase" doc:"The phase of its Chat."`
	Reason string             `json:"reason,omitempty" doc:"The reason of its condition Ready."`
	Said   string             `json:"last_reply,omitempty" doc:"How its newest reply begins."`
}

type listResult struct {
	Agents []agentLine `json:"agents" doc:"The agents."`
	Total  int         `json:"total" doc:"How many there are."`
}

func (list) Definition() tools.Definition {
	return tools.Definition{
		Name:        string(v1alpha1.BuiltInListAgents),
		Description: "Lists your agents, the newest first, and what each is doing. wait_agent has their reports.",
		InputSchema: arguments.Object(map[string]any{
			"limit":  arguments.Integer(1, maxListed, defaultListed, "How many to list."),
			"offset": arguments.Integer(0, maxOffset, 0, "How many to pass over."),
		}),
		Traits: tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: suits, Repeatable: true},
		Reference: tools.Reference{Offered: offered, Result: listResult{},
			Limits: []string{"Archived ones are left out, and sub-chats that people have created are listed, too."}},
	}
}

// Run lists them.
func (t list) Run(ctx context.Context, call tools.Call) (string, error) {
	var given struct {
		Limit  int `json:"limit"`
		Offset int `json:"offset"`
	}
	if err := arguments.Decode(t.Definition().InputSchema, call.Input, &given); err != nil {
		return "", err
	}
	if err := allowed(call.Chat); err != nil {
		return "", err
	}
	all, err := t.below(ctx, call.Chat)
	if err != nil {
		return "", err
	}
	slices.SortFunc(all, func(a, b v1alpha1.Chat) int {
		if c := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	result := listResult{Agents: []agentLine{}, Total: len(all)}
	for _, chat := range all[min(given.Offset, len(all)):min(given.Offset+given.Limit, len(all))] {
		line := agentLine{Chat: chat.Name, Title: chat.Status.Title, Phase: chat.Status.Phase, Said: chat.Status.LastReply}
		if ready := meta.FindStatusCondition(chat.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			line.Reason = ready.Reason
		}
		result.Agents = append(result.Agents, line)
	}
	return tools.Encode(result)
}

// models tells who may answer sub-chats.
type models struct{ *common }

type modelLine struct {
	Config   string `json:"model_config_id" doc:"The ChatModelConfig."`
	Model    string `json:"model" doc:"The model, as its provider calls it."`
	Provider string `json:"provider" doc:"The provider."`
	Own      bool   `json:"own,omitempty" doc:"Whether it is the one that answers you, and agents by default."`
}

type modelsResult struct {
	Models []modelLine `json:"models" doc:"The models."`
}

func (models) Definition() tools.Definition {
	return tools.Definition{
		Name:        string(v1alpha1.BuiltInListSubagentModels),
		Description: "Lists the models that may answer agents of yours, for model_config_id of spawn_agent.",
		InputSchema: arguments.Object(map[string]any{}),
		Traits:      tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: suits, Repeatable: true},
		Reference: tools.Reference{Offered: offered, Result: modelsResult{},
			Limits: []string{"Those of `spec.subAgents.modelConfigs`, and the one that answers the chat. Disabled ones are " +
				"left out."}},
	}
}

// choices are the ChatModelConfigs that may answer agents of the chat, its own first.
func choices(chat *v1alpha1.Chat) []string {
	var names []string
	if g := chat.Status.Generation; g != nil && g.ModelConfig != "" {
		names = append(names, g.ModelConfig)
	}
	if chat.Spec.SubAgents != nil {
		for _, ref := range chat.Spec.SubAgents.ModelConfigs {
			if !slices.Contains(names, ref.Name) {
				names = append(names, ref.Name)
			}
		}
	}
	return names
}

// Run lists them.
func (t models) Run(ctx context.Context, call tools.Call) (string, error) {
	if err := arguments.Decode(t.Definition().InputSchema, call.Input, &struct{}{}); err != nil {
		return "", err
	}
	if err := allowed(call.Chat); err != nil {
		return "", err
	}
	result := modelsResult{Models: []modelLine{}}
	for i, name := range choices(call.Chat) {
		config, err := t.options.Config(ctx, name)
		switch {
		case apierrors.IsNotFound(err) || err == nil && config.Spec.Disabled:
			continue
		case err != nil:
			return "", tools.Unread(ctx, "model "+name)
		}
		result.Models = append(result.Models, modelLine{Config: name, Model: config.Spec.Model,
			Provider: string(config.Spec.Provider), Own: i == 0 && call.Chat.Status.Generation != nil})
	}
	return tools.Encode(result)
}
