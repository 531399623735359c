// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/chat/conditions"
)

// markClass says which class the chat has, and what of the chat does not count. The generation is that which the newest
// step goes by: a class that changes writes nothing to the chats that are at rest.
func markClass(p *pass) {
	st, class := p.status(), p.facts.Class
	if p.plan.Begins {
		st.NamespaceClass = inForce(p.facts.Namespace)
	}
	switch {
	case class == nil && classMissing(p):
		return // It may come back.
	case class == nil:
		st.ChatClass, st.Settings = nil, nil
		conditions.MarkIgnored(st, "", nil, p.facts.Now)
		return
	case st.ChatClass == nil || st.ChatClass.Name != class.Name || p.plan.Begins:
		st.ChatClass, st.Settings = inForce(class.ChatClass), chatclass.Status(class.Said, p.chat)
	}
	conditions.MarkIgnored(st, class.Name, class.Ignored, p.facts.Now)
}

func inForce(class *v1beta1.ChatClass) *v1beta1.AppliedChatClass {
	if class == nil {
		return nil
	}
	return &v1beta1.AppliedChatClass{Name: class.Name, UID: string(class.UID), Generation: class.Generation}
}
