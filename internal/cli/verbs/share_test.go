// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"strings"
	"testing"
)

func TestShareAddsListsAndRemovesReaders(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.run("share", "triage", "--with", "user:jane", "--with", "group:ops").succeeds()
	p.run("share", "triage", "--with", "user:jane", "--for", "7d", "--remove", "group:ops").
		shows("chat.parley.dev/triage has 1 reader\n")
	c := p.run("share", "triage", "--list")
	c.succeeds()
	if list := c.out.String(); !strings.HasPrefix(list, "User jane until 2") {
		t.Errorf("the readers are %q", list)
	}
	p.run("share", "triage", "--remove", "user:jane").shows("chat.parley.dev/triage has 0 readers\n")
	p.run("share", "triage", "--list").shows("", "Chat triage is not shared.")
	p.run("share", "triage", "--with", "user:jane", "--for", "xd").exits(exitFailed, "no number of days")
	p.run("share", "triage").exits(exitUsage, "--with")
	p.run("share", "triage", "--with", "user:jane", "--for", "-1h").exits(exitUsage, "must be positive")
	p.run("share", "triage", "--with", "user:jane", "--for", "0h").exits(exitUsage, "must be positive")
	p.run("share", "triage", "--remove", "user:jane", "--for", "1h").exits(exitUsage, "--with")
	p.run("share", "triage", "--with", "serviceaccount:ci:bot").succeeds()
	p.run("share", "triage", "--remove", "serviceaccount:bot").exits(exitUsage, "is not shared with")
	p.run("share", "triage", "--list").shows("ServiceAccount bot of namespace ci\n")
	p.run("share", "triage", "--with", "serviceaccount:bot").exits(exitUsage, "of namespace ci, and has one reader")
	p.run("share", "triage", "--with", "serviceaccount:ci:bot", "--for", "7d").
		shows("chat.parley.dev/triage has 1 reader\n")
	p.run("share", "triage", "--remove", "serviceaccount:ci:bot").shows("chat.parley.dev/triage has 0 readers\n")
	p.run("share", "triage", "--with", "serviceaccount:No Account").exits(exitFailed, "lower-case letters")
	p.run("share", "triage", "--with", "jane").exits(exitUsage, "user:NAME")
}
