// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
)

// refusals are the reasons that make an Event when they come up, and not again while they last.
var refusals = []string{v1alpha1.ReasonGenerationPodRefused, v1alpha1.ReasonPromptRefused, v1alpha1.ReasonPromptNameTaken}

// noPrompt is why spec.prompt cannot become a message, in the words of the conditions; nil if it can. A chat of the same name may
// just have been deleted, with its messages on their way out: until then nobody is asked to do anything.
func (p *pass) noPrompt() *conditions.NoPrompt {
	why := p.facts.NoPrompt
	if why == nil {
		return nil
	}
	told := &conditions.NoPrompt{Message: why.Message, Refused: why.Refused}
	if left := ManifestPatience - p.facts.Now.Sub(p.chat.CreationTimestamp.Time); why.Refused == "" && left > 0 {
		p.plan.Again, told.MayPass = left, true
	}
	return told
}

// noticeRefusal makes an Event of a refusal that the chat has not told of before.
func (p *pass) noticeRefusal() {
	ready := meta.FindStatusCondition(p.status().Conditions, v1alpha1.ConditionReady)
	before := meta.FindStatusCondition(p.chat.Status.Conditions, v1alpha1.ConditionReady)
	for _, reason := range refusals {
		if ready.Reason == reason && (before == nil || before.Reason != reason) {
			p.notice(reason, "Generate", ready.Message)
		}
	}
}
