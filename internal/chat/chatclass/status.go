// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass

import (
	"parley.dev/parley/api/v1beta1"
)

// Status says in short what a class makes of a chat: said is the chat itself, inForce the same with the settings that
// are in force.
func Status(said, inForce *v1beta1.Chat) *v1beta1.EffectiveSettings {
	s := &v1beta1.EffectiveSettings{Limits: limitsOf(&inForce.Spec)}
	for i := range fields {
		f := &fields[i]
		if !same(f.value(&said.Spec.ChatSettings), f.value(&inForce.Spec.ChatSettings)) {
			s.FromClass = append(s.FromClass, f.name)
		}
	}
	return s
}

// limitsOf are the limits with their defaults.
func limitsOf(spec *v1beta1.ChatSpec) v1beta1.ChatLimits {
	limits := v1beta1.ChatLimits{
		MaxSteps: new(spec.MaxStepsOrDefault()), MaxQueue: new(spec.MaxQueueOrDefault()),
		MaxSubChats: new(spec.MaxSubChatsOrDefault()), MaxDepth: new(spec.MaxDepthOrDefault()),
	}
	if l := spec.Limits; l != nil {
		limits.ActionDeadlineSeconds, limits.Budget = l.ActionDeadlineSeconds, l.Budget
	}
	return limits
}
