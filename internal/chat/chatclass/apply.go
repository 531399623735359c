// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass

import (
	"cmp"
	"slices"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval/toolpolicy"
)

// Apply is what is in force of a chat: what it says itself as far as the class lets it, and what the class says. The
// fields of the chat that do not count for that are ignored. A chat without class (nil) has what it says.
func Apply(chat *v1beta1.ChatSettings, class *v1beta1.ChatClassSpec) (
	inForce v1beta1.ChatSettings, ignored []string,
) {
	if class == nil {
		return *chat, nil
	}
	s := stepsOf(chat, class)
	s.bounded.SystemPrompt = Behind(class.Preamble, s.bounded.SystemPrompt)
	return s.bounded, s.ignored
}

// steps are the settings of a chat on their way to those that are in force.
type steps struct {
	// said is what the chat says as far as the class lets it, and ignored the fields that do not count.
	said    v1beta1.ChatSettings
	ignored []string
	// merged has what the class says where the chat says nothing; bounded is that within the restrictions.
	merged, bounded v1beta1.ChatSettings
}

func stepsOf(chat *v1beta1.ChatSettings, class *v1beta1.ChatClassSpec) steps {
	kept := class.Restrictions
	if kept == nil {
		kept = &v1beta1.ChatRestrictions{}
	}
	s := steps{said: *chat}
	for i := range fields {
		if f := &fields[i]; slices.Contains(kept.Fields, f.name) && f.set(&s.said) {
			f.clear(&s.said)
			s.ignored = append(s.ignored, string(f.name))
		}
	}
	s.dropModels(kept)
	s.merged = merge(&s.said, &class.Defaults)
	s.bounded = bound(s.merged, kept)
	bindServers(&s.bounded, class)
	s.bindArchive(class, kept)
	return s
}

// bindArchive lets the class alone say whether chats are archived that it has deleted: a chat could stay for good where
// there is no store, or its content where the class wants it deleted.
func (s *steps) bindArchive(class *v1beta1.ChatClassSpec, kept *v1beta1.ChatRestrictions) {
	if class.Keep == nil && !kept.Retention.Deletes() {
		return
	}
	archives := kept.Retention.Archives() || class.Defaults.Retention.Archives()
	if s.said.Retention.Archives() && !archives {
		s.ignored = append(s.ignored, "retention.archive")
	}
	if s.bounded.Retention.Archives() == archives {
		return
	}
	var r v1beta1.ChatRetention
	if s.bounded.Retention != nil {
		r = *s.bounded.Retention
	}
	if r.Archive = nil; archives {
		r.Archive = new(true)
	}
	s.bounded.Retention = &r
}

// dropModels takes out the ChatModelConfigs that the chat names for something else than its answers and may not name.
func (s *steps) dropModels(kept *v1beta1.ChatRestrictions) {
	if a := s.said.Advisor; a != nil && refused(kept, a.ModelConfigRef) {
		without := *a
		without.ModelConfigRef, s.said.Advisor = nil, &without
		s.ignored = append(s.ignored, "advisor.modelConfigRef")
	}
	if c := s.said.Compaction; c != nil && refused(kept, c.ModelConfigRef) {
		without := *c
		without.ModelConfigRef, s.said.Compaction = nil, &without
		s.ignored = append(s.ignored, "compaction.modelConfigRef")
	}
}

// merge is what a chat says, and what the class says where the chat says nothing.
func merge(own, class *v1beta1.ChatSettings) v1beta1.ChatSettings {
	return v1beta1.ChatSettings{
		SystemPrompt:               cmp.Or(own.SystemPrompt, class.SystemPrompt),
		InstructionsFrom:           orList(own.InstructionsFrom, class.InstructionsFrom),
		SkillsFrom:                 orList(own.SkillsFrom, class.SkillsFrom),
		ModelConfigRef:             cmp.Or(own.ModelConfigRef, class.ModelConfigRef),
		WhenModelConfigUnavailable: cmp.Or(own.WhenModelConfigUnavailable, class.WhenModelConfigUnavailable),
		ReasoningEffort:            cmp.Or(own.ReasoningEffort, class.ReasoningEffort),
		Tools:                      mergeWith(own.Tools, class.Tools, mergeTools),
		MCPServers:                 orList(own.MCPServers, class.MCPServers),
		Kubernetes:                 cmp.Or(own.Kubernetes, class.Kubernetes),
		Advisor:                    mergeWith(own.Advisor, class.Advisor, mergeAdvisor),
		Workspace:                  cmp.Or(own.Workspace, class.Workspace),
		SubAgents:                  mergeWith(own.SubAgents, class.SubAgents, mergeSubAgents),
		Limits:                     mergeWith(own.Limits, class.Limits, mergeLimits),
		Compaction:                 MergeCompaction(own.Compaction, class.Compaction),
		Retention:                  cmp.Or(own.Retention, class.Retention),
		Debug:                      cmp.Or(own.Debug, class.Debug),
	}
}

func mergeTools(own, class *v1beta1.ChatTools) *v1beta1.ChatTools {
	return &v1beta1.ChatTools{
		ToolPolicy: v1beta1.ToolPolicy{
			Allow: orList(own.Allow, class.Allow), Deny: orList(own.Deny, class.Deny),
			Approval: orList(own.Approval, class.Approval),
		},
		Client: orList(own.Client, class.Client), Provider: orList(own.Provider, class.Provider),
		WebSearch: cmp.Or(own.WebSearch, class.WebSearch), StopAfter: orList(own.StopAfter, class.StopAfter),
	}
}

func mergeAdvisor(own, class *v1beta1.ChatAdvisor) *v1beta1.ChatAdvisor {
	return &v1beta1.ChatAdvisor{
		Enabled: cmp.Or(own.Enabled, class.Enabled), ModelConfigRef: cmp.Or(own.ModelConfigRef, class.ModelConfigRef),
		ReasoningEffort: cmp.Or(own.ReasoningEffort, class.ReasoningEffort), MaxUses: cmp.Or(own.MaxUses, class.MaxUses),
		MaxOutputTokens: cmp.Or(own.MaxOutputTokens, class.MaxOutputTokens),
	}
}

func mergeSubAgents(own, class *v1beta1.SubAgentSettings) *v1beta1.SubAgentSettings {
	return &v1beta1.SubAgentSettings{
		Enabled: cmp.Or(own.Enabled, class.Enabled), ModelConfigs: orList(own.ModelConfigs, class.ModelConfigs),
	}
}

// MergeCompaction is the first of two policies, and the second where that says nothing; nil stands for nothing said.
func MergeCompaction(first, second *v1beta1.CompactionPolicy) *v1beta1.CompactionPolicy {
	return mergeWith(first, second, func(first, second *v1beta1.CompactionPolicy) *v1beta1.CompactionPolicy {
		return &v1beta1.CompactionPolicy{
			ThresholdPercent: cmp.Or(first.ThresholdPercent, second.ThresholdPercent),
			ModelConfigRef:   cmp.Or(first.ModelConfigRef, second.ModelConfigRef),
		}
	})
}

func mergeLimits(own, class *v1beta1.ChatLimits) *v1beta1.ChatLimits {
	return &v1beta1.ChatLimits{
		MaxSteps: cmp.Or(own.MaxSteps, class.MaxSteps), MaxQueue: cmp.Or(own.MaxQueue, class.MaxQueue),
		MaxSubChats: cmp.Or(own.MaxSubChats, class.MaxSubChats), MaxDepth: cmp.Or(own.MaxDepth, class.MaxDepth),
		ActionDeadlineSeconds: cmp.Or(own.ActionDeadlineSeconds, class.ActionDeadlineSeconds),
		Budget:                cmp.Or(own.Budget, class.Budget),
	}
}

// mergeWith merges what both say; nil stands for nothing said.
func mergeWith[T any](own, class *T, merge func(own, class *T) *T) *T {
	if own == nil || class == nil {
		return cmp.Or(own, class)
	}
	return merge(own, class)
}

func orList[T any](own, class []T) []T {
	if own == nil {
		return class
	}
	return own
}

// bound keeps settings within restrictions.
func bound(s v1beta1.ChatSettings, kept *v1beta1.ChatRestrictions) v1beta1.ChatSettings {
	if kept.Tools != nil {
		tools := v1beta1.ChatTools{}
		if s.Tools != nil {
			tools = *s.Tools
		}
		tools.ToolPolicy = toolpolicy.Within(tools.ToolPolicy, *kept.Tools)
		s.Tools = &tools
	}
	if kept.Limits != nil {
		s.Limits = boundLimits(s.Limits, kept.Limits)
	}
	if kept.Retention != nil {
		s.Retention = boundRetention(s.Retention, kept.Retention)
	}
	if kept.Advisor != nil && s.Advisor != nil {
		advisor := *s.Advisor
		advisor.MaxUses = atMost(advisor.MaxUses, kept.Advisor.MaxUses, v1beta1.DefaultAdvisorUses)
		advisor.MaxOutputTokens = atMost(advisor.MaxOutputTokens, kept.Advisor.MaxOutputTokens,
			v1beta1.DefaultAdvisorOutputTokens)
		s.Advisor = &advisor
	}
	return s
}

// WithinCluster keeps the advisor of a chat within the bound of the whole cluster on its uses in a turn; nil: there is
// none. 0 switches it off.
func WithinCluster(advisor *v1beta1.ChatAdvisor, uses *int32) *v1beta1.ChatAdvisor {
	if advisor == nil || uses == nil {
		return advisor
	}
	bounded := *advisor
	if *uses == 0 {
		bounded.Enabled = new(false)
		return &bounded
	}
	bounded.MaxUses = atMost(advisor.MaxUses, uses, v1beta1.DefaultAdvisorUses)
	return &bounded
}
