// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass

import "parley.dev/parley/api/v1alpha1"

// field is one that a class may keep to itself.
type field struct {
	name  v1alpha1.ChatField
	set   func(s *v1alpha1.ChatSettings) bool
	clear func(s *v1alpha1.ChatSettings)
}

var fields = []field{
	{v1alpha1.FieldSystemPrompt, func(s *v1alpha1.ChatSettings) bool { return s.SystemPrompt != "" },
		func(s *v1alpha1.ChatSettings) { s.SystemPrompt = "" }},
	{v1alpha1.FieldInstructionsFrom, func(s *v1alpha1.ChatSettings) bool { return s.InstructionsFrom != nil },
		func(s *v1alpha1.ChatSettings) { s.InstructionsFrom = nil }},
	{v1alpha1.FieldSkillsFrom, func(s *v1alpha1.ChatSettings) bool { return s.SkillsFrom != nil },
		func(s *v1alpha1.ChatSettings) { s.SkillsFrom = nil }},
	{v1alpha1.FieldModelConfigRef, func(s *v1alpha1.ChatSettings) bool { return s.ModelConfigRef != nil },
		func(s *v1alpha1.ChatSettings) { s.ModelConfigRef = nil }},
	{v1alpha1.FieldWhenModelConfigUnavailable,
		func(s *v1alpha1.ChatSettings) bool { return s.WhenModelConfigUnavailable != "" },
		func(s *v1alpha1.ChatSettings) { s.WhenModelConfigUnavailable = "" }},
	{v1alpha1.FieldReasoningEffort, func(s *v1alpha1.ChatSettings) bool { return s.ReasoningEffort != "" },
		func(s *v1alpha1.ChatSettings) { s.ReasoningEffort = "" }},
	{v1alpha1.FieldTools, func(s *v1alpha1.ChatSettings) bool { return s.Tools != nil },
		func(s *v1alpha1.ChatSettings) { s.Tools = nil }},
	{v1alpha1.FieldMCPServers, func(s *v1alpha1.ChatSettings) bool { return s.MCPServers != nil },
		func(s *v1alpha1.ChatSettings) { s.MCPServers = nil }},
	{v1alpha1.FieldKubernetes, func(s *v1alpha1.ChatSettings) bool { return s.Kubernetes != nil },
		func(s *v1alpha1.ChatSettings) { s.Kubernetes = nil }},
	{v1alpha1.FieldAdvisor, func(s *v1alpha1.ChatSettings) bool { return s.Advisor != nil },
		func(s *v1alpha1.ChatSettings) { s.Advisor = nil }},
	{v1alpha1.FieldWorkspace, func(s *v1alpha1.ChatSettings) bool { return s.Workspace != nil },
		func(s *v1alpha1.ChatSettings) { s.Workspace = nil }},
	{v1alpha1.FieldSubAgents, func(s *v1alpha1.ChatSettings) bool { return s.SubAgents != nil },
		func(s *v1alpha1.ChatSettings) { s.SubAgents = nil }},
	{v1alpha1.FieldCompaction, func(s *v1alpha1.ChatSettings) bool { return s.Compaction != nil },
		func(s *v1alpha1.ChatSettings) { s.Compaction = nil }},
	{v1alpha1.FieldLimits, func(s *v1alpha1.ChatSettings) bool { return s.Limits != nil },
		func(s *v1alpha1.ChatSettings) { s.Limits = nil }},
	{v1alpha1.FieldRetention, func(s *v1alpha1.ChatSettings) bool { return s.Retention != nil },
		func(s *v1alpha1.ChatSettings) { s.Retention = nil }},
	{v1alpha1.FieldDebug, func(s *v1alpha1.ChatSettings) bool { return s.Debug != nil },
		func(s *v1alpha1.ChatSettings) { s.Debug = nil }},
}
