// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// spaces are those between the columns of a table.
var spaces = regexp.MustCompile(` {2,}`)

// shown is what a verb prints that must go well, columns parted by bars.
func (p *person) shown(args ...string) string {
	p.t.Helper()
	return spaces.ReplaceAllString(p.exact(args...), "|")
}

// exact is the same as it is printed.
func (p *person) exact(args ...string) string {
	p.t.Helper()
	c := p.run(args...)
	c.succeeds()
	return c.out.String()
}

func TestLsShowsHowChatsStandAndWhatWaits(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.chat.Status.Title, p.chat.Status.Model = "Nodes\n\x1b[2Jdown", "claude"
	p.chat.Status.History = v1beta1.HistoryStatus{Version: 3, Length: 4, Head: "a"}
	p.chat.Status.Queue = []v1beta1.QueuedMessage{{Name: "next"}}
	p.chat.Status.Cost = []v1beta1.Cost{{Currency: "EUR", MicroUnits: 20_000}, {Currency: "USD", MicroUnits: 1_000_000}}
	p.chat.Status.Usage.TotalTokens = 1234
	p.chat.Status.Conditions = ready(metav1.ConditionUnknown, v1beta1.ReasonRequiresAction, "")
	p.want()
	old := chattest.In(p.namespace, chattest.Chat("old"))
	p.create(old)
	old.Status.Archived = true
	p.updateStatus(old)
	header := "NAME|PHASE|REASON|MODEL|MSGS|QUEUED|COST|WAITS FOR|AGE|TITLE"
	row := `triage|RequiresAction|RequiresAction|claude|4|1|0.02 EUR, 1.00 USD|1 approval, 1 client result|`
	table := p.shown("ls")
	if !strings.HasPrefix(table, header+"\n"+row) || !strings.HasSuffix(table, `s|Nodes \u001b[2Jdown`+"\n") {
		t.Errorf("shown\n%s", table)
	}
	if bare := p.shown("ls", "--no-headers"); !strings.HasPrefix(bare, row) {
		t.Errorf("shown\n%s", bare)
	}
	if wide := p.shown("ls", "--all", "-o", "wide"); !strings.Contains(wide,
		"TITLE|TOKENS|PARENT|TURN|LAST REPLY\nold|") ||
		!strings.Contains(wide, "|1234|<none>|<none>|<none>\n") {
		t.Errorf("shown\n%s", wide)
	}
	all := p.start("certificate", "", "ls", "-A")
	if err := all.wait(); err != nil || !strings.HasPrefix(all.out.String(), "NAMESPACE ") ||
		!strings.Contains(spaces.ReplaceAllString(all.out.String(), "|"), p.namespace+"|triage|") {
		t.Errorf("shown\n%s%v", all.out.String(), err)
	}
	check.Equal(t, "shown", "chat.parley.dev/old\nchat.parley.dev/triage\n", p.shown("ls", "--all", "-o", "name"))
	for output, read := range map[string]func([]byte, any) error{"json": json.Unmarshal,
		"yaml": func(b []byte, v any) error { return yaml.Unmarshal(b, v) }} {
		var list v1beta1.ChatList
		if err := read([]byte(p.exact("ls", "-o", output)), &list); err != nil || list.Kind != "ChatList" ||
			len(list.Items) != 1 || list.Items[0].Kind != "Chat" || list.Items[0].ManagedFields != nil {
			t.Errorf("%s: read %+v, %v", output, list, err)
		}
	}
	p.run("ls", "-l", "team=green").shows("", "No chats found")
}

func TestLsTellsOfChangesUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	c := p.run("ls", "--watch")
	c.waitOutput("triage")
	p.chat.Status.Title = "It has a title"
	p.updateStatus(p.chat)
	c.waitOutput("It has a title")
	p.create(chattest.In(p.namespace, chattest.Chat("second")))
	c.waitOutput("second")
	c.stop()
	c.succeeds()
}
