// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cost

import "parley.dev/parley/api/v1beta1"

// Call is what a call of a model used.
type Call struct {
	// Model that was called; nil if that is not known.
	Model *v1beta1.ModelIdentity
	Usage v1beta1.TokenUsage
	// Cost is nil if the model has no price.
	Cost *v1beta1.Cost
}

// IsCopy reports whether the message of the chat is a copy that a fork began with: the chat that it is from accounts
// for its calls. In a restored chat that is not known.
func IsCopy(chat *v1beta1.Chat, m *v1beta1.ChatMessage) bool {
	const from = v1beta1.AnnotationRestoredFrom
	return chat.Spec.Fork != nil && chat.Annotations[from] == "" && m.Annotations[from] != ""
}

// Calls are the calls that a message accounts for: that of its reply, of advice, and of a title. The first one is the
// reply's, where the message has one.
func Calls(g *v1beta1.MessageGeneration) (calls []Call) {
	if g == nil {
		return nil
	}
	switch {
	case g.Usage != nil:
		calls = append(calls, Call{g.Model, *g.Usage, g.Cost})
		if g.AdvisorUsage != nil {
			calls = append(calls, Call{g.AdvisorModel, *g.AdvisorUsage, nil})
		}
	case g.AdvisorUsage != nil:
		calls = append(calls, Call{g.AdvisorModel, *g.AdvisorUsage, g.Cost})
	case g.Cost != nil:
		calls = append(calls, Call{Model: g.Model, Cost: g.Cost})
	}
	if t := g.TitleCall; t != nil {
		calls = append(calls, Call{t.Model, t.Usage, t.Cost})
	}
	return calls
}
