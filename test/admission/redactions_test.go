// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestOnlyRedactorsRemoveText(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const (
		closed     = "only Parley's manager writes the status"
		notAllowed = "may not redact chats, and so cannot write the annotations"
		words      = `"spec":{"parts":[{"type":"Text","text":"[redacted]"}]}`
		marked     = `"metadata":{"annotations":{"parley.dev/redacted":"1"}}`
		title      = `{"status":{"observedGeneration":1,"title":"[redacted]"}}`
	)
	prompted := newChat(unique("chat"))
	prompted.Spec.Prompt = "My password is hunter2."
	mustCreate(t, chatter, prompted)
	begin := func(o client.Object) action {
		return patches(o, `{"metadata":{"annotations":{"parley.dev/redacting":"true"}}}`)
	}
	end := func(o client.Object) action {
		return patches(o, `{"metadata":{"annotations":{"parley.dev/redacting":null}}}`)
	}
	const otherPrompt = `{"spec":{"prompt":"My password is [redacted]."}}`
	var writes []write
	for _, who := range []actor{chatter, owner} {
		writes = append(writes,
			write{who, "marks a message as redacted", patches(s.asked, "{"+marked+"}"), notAllowed},
			// Two policies refuse it, and the API server reports one of them.
			write{who, "redacts a reply", patches(s.replied, "{"+marked+","+words+"}"), "denied request"},
			write{who, "opens the status of a chat", begin(s.chat), notAllowed},
			write{who, "changes a prompt", patches(prompted, otherPrompt), "prompt starts the chat and cannot change"},
		)
	}
	try(t, append(writes,
		write{redactor, "redacts a message", patches(s.asked, `{`+marked+`,"spec":{"content":"[redacted]"}}`), ""},
		write{redactor, "changes a reply without a mark", patches(s.replied, "{"+words+"}"),
			"a generated message cannot change"},
		write{redactor, "redacts a reply", patches(s.replied, "{"+marked+","+words+"}"), ""},
		write{redactor, "writes a status that is closed", patchesStatus(s.chat, title), closed},
		write{redactor, "changes a prompt that is closed", patches(prompted, otherPrompt),
			"prompt starts the chat and cannot change"},
		write{redactor, "opens a chat", begin(s.chat), ""},
		write{redactor, "opens another chat", begin(prompted), ""},
		write{owner, "writes a status that a redactor has opened", patchesStatus(s.chat, title), noRight},
		write{boss, "closes a chat", end(s.chat), ""},
		write{redactor, "opens it again", begin(s.chat), ""},
		write{redactor, "redacts the status", patchesStatus(s.chat, title), ""},
		write{redactor, "writes the status of a message", patchesStatus(s.asked, title), noRight},
		write{redactor, "redacts a prompt", patches(prompted, otherPrompt), ""},
		write{redactor, "closes the chat", end(s.chat), ""},
		write{redactor, "writes a status that is closed again", patchesStatus(s.chat, title), closed},
		write{redactor, "creates a message", creates(say(s.chat.Name)), noRight},
	))
}
