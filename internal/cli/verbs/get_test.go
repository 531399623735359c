// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"testing"

	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestGetHasTheHabitsOfKubectl(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	blue := chattest.Chat("blue")
	blue.Namespace, blue.Labels = p.namespace, map[string]string{"team": "blue"}
	p.create(blue)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-o", "name"}, "chat.parley.dev/blue\nchat.parley.dev/triage\n"},
		{[]string{"triage", "-o", "jsonpath={.metadata.name}"}, "triage"},
		{[]string{"chat/blue", "chats/triage", "-o", "name"}, "chat.parley.dev/blue\nchat.parley.dev/triage\n"},
		{[]string{"-l", "team=blue", "-o", "go-template={{len .items}}"}, "1"},
		{[]string{"-o", "custom-columns=N:.metadata.name", "--no-headers"}, "blue\ntriage\n"},
		{[]string{"-o", "custom-columns=N:.metadata.name", "--sort-by=.metadata.labels.team"}, "N\ntriage\nblue\n"},
		{[]string{"none", "--ignore-not-found"}, ""},
	} {
		p.run(append([]string{"get", "-n", p.namespace}, c.args...)...).shows(c.want)
	}
	table := p.run("get", "-n", p.namespace, "blue", "--show-labels")
	table.succeeds()
	check.Contains(t, table.out.String(), "NAME", "READY", "team=blue")
	p.run("get", "-n", p.namespace, "none").exits(exitNotFound, `"none" not found`)
	p.run("get", "-n", p.namespace, "-o", "nonsense").exits(exitFailed, "unable to match a printer")
}
