// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestDeletionAsksAtATerminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys    string
		code    int
		deleted bool
	}{
		"yes":               {"y\n", exitDone, true},
		"yes in full":       {"YES\n", exitDone, true},
		"no":                {"n\n", exitUsage, false},
		"nothing":           {"\n", exitUsage, false},
		"something else":    {"yo\n", exitUsage, false},
		"the end of input":  {leave, exitUsage, false},
		"a name by mistake": {"triage\n", exitUsage, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t)
			p.said("first", "one")
			a := p.sits("delete", "triage")
			a.sees("Delete chat triage with its 2 messages, sub-chats included? [y/N] ")
			a.types(c.keys)
			a.ends(c.code)
			err := p.c.Get(t.Context(), client.ObjectKeyFromObject(p.chat), p.chat)
			if c.deleted != apierrors.IsNotFound(err) {
				t.Errorf("the chat: %v", err)
			}
			if !c.deleted {
				a.sees("kubectl chat: chat triage is kept")
			}
		})
	}
}

func TestNobodyIsAskedWhoHasAgreed(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	a := p.sits("delete", "triage", "--yes")
	a.ends(exitDone)
	a.sees("chat.parley.dev/triage deleted")
}
