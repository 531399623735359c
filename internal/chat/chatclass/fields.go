// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass

import (
	"reflect"

	"parley.dev/parley/api/v1beta1"
)

// field is one that a class may keep to itself.
type field struct {
	name v1beta1.ChatField
	// of points to it.
	of func(s *v1beta1.ChatSettings) any
	// merged is true where each of its own fields counts for itself.
	merged bool
}

// settings keeps the rows below on a line each.
type settings = v1beta1.ChatSettings

var fields = []field{
	{v1beta1.FieldSystemPrompt, func(s *settings) any { return &s.SystemPrompt }, false},
	{v1beta1.FieldInstructionsFrom, func(s *settings) any { return &s.InstructionsFrom }, false},
	{v1beta1.FieldSkillsFrom, func(s *settings) any { return &s.SkillsFrom }, false},
	{v1beta1.FieldModelConfigRef, func(s *settings) any { return &s.ModelConfigRef }, false},
	{v1beta1.FieldWhenModelConfigUnavailable, func(s *settings) any { return &s.WhenModelConfigUnavailable }, false},
	{v1beta1.FieldReasoningEffort, func(s *settings) any { return &s.ReasoningEffort }, false},
	{v1beta1.FieldTools, func(s *settings) any { return &s.Tools }, true},
	{v1beta1.FieldMCPServers, func(s *settings) any { return &s.MCPServers }, false},
	{v1beta1.FieldKubernetes, func(s *settings) any { return &s.Kubernetes }, false},
	{v1beta1.FieldAdvisor, func(s *settings) any { return &s.Advisor }, true},
	{v1beta1.FieldWorkspace, func(s *settings) any { return &s.Workspace }, false},
	{v1beta1.FieldSubAgents, func(s *settings) any { return &s.SubAgents }, true},
	{v1beta1.FieldCompaction, func(s *settings) any { return &s.Compaction }, true},
	{v1beta1.FieldLimits, func(s *settings) any { return &s.Limits }, true},
	{v1beta1.FieldRetention, func(s *settings) any { return &s.Retention }, false},
	{v1beta1.FieldDebug, func(s *settings) any { return &s.Debug }, false},
}

func (f *field) value(s *v1beta1.ChatSettings) reflect.Value { return reflect.ValueOf(f.of(s)).Elem() }

// set reports whether the settings say something of the field.
func (f *field) set(s *v1beta1.ChatSettings) bool { return !f.value(s).IsZero() }

// clear lets the settings say nothing of it.
func (f *field) clear(s *v1beta1.ChatSettings) { f.value(s).SetZero() }

// same reports whether two values are the same. One that is there and says nothing is as good as none.
func same(a, b reflect.Value) bool {
	a, b = bare(a), bare(b)
	if !a.IsValid() || !b.IsValid() {
		return (!a.IsValid() || a.IsZero()) && (!b.IsValid() || b.IsZero())
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// bare is what a value points to; not valid for a pointer to nothing.
func bare(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Pointer {
		return v.Elem()
	}
	return v
}
