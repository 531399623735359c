// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass

import (
	"parley.dev/parley/api/v1alpha1"
)

// Status says in short what a class makes of a chat: said is the chat itself, inForce the same with the settings that
// are in force.
func Status(said, inForce *v1alpha1.Chat) *v1alpha1.EffectiveSettings {
	s := &v1alpha1.EffectiveSettings{Limits: limitsOf(&inForce.Spec)}
	for i := range fields {
		f := &fields[i]
		if !same(f.value(&said.Spec.ChatSettings), f.value(&inForce.Spec.ChatSettings)) {
			s.FromClass = append(s.FromClass, f.name)
		}
	}
	return s
}

// limitsOf are the limits with their defaults.
func limitsOf(spec *v1alpha1.ChatSpec) v1alpha1.ChatLimits {
	limits := v1alpha1.ChatLimits{
		MaxSteps: new(spec.MaxStepsOrDefault()), MaxQueue: new(spec.MaxQueueOrDefault()),
		MaxSubChats: new(spec.MaxSubChatsOrDefault()), MaxDepth: new(spec.MaxDepthOrDefault()),
	}
	if l := spec.Limits; l != nil {
		limits.ActionDeadlineSeconds, limits.Budget = l.ActionDeadlineSeconds, l.Budget
	}
	return limits
}
