// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"parley.dev/parley/api/v1alpha1"
)

func TestUnknownModeAndSubChatPlanAreRejected(t *testing.T) {
	t.Parallel()
	sub, alone := newChat(unique("chat")), newChat(unique("chat"))
	sub.Spec.ParentRef = &v1alpha1.ChatReference{Name: "root"}
	mustCreate(t, chatter, sub)
	mustCreate(t, chatter, alone)
	const plan, explore, other = `{"spec":{"mode":"Plan"}}`, `{"spec":{"mode":"Explore"}}`, `{"spec":{"mode":"plan"}}`
	try(t, []write{
		{chatter, "has a sub-chat plan", patches(sub, plan), "a sub-chat proposes no plans: set mode to Explore"},
		{chatter, "has a sub-chat explore", patches(sub, explore), ""},
		{chatter, "makes a mode up", patches(alone, other), `supported values: "Plan", "Explore"`},
		{chatter, "has a chat plan", patches(alone, plan), ""},
		{chatter, "has it explore", patches(alone, explore), ""},
		{chatter, "takes the mode away", patches(alone, `{"spec":{"mode":null}}`), ""},
	})
}
