// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/cli/doctor"
	"parley.dev/parley/internal/cli/terminal"
)

// ChatTable prints chats as rows of a table, or in another format.
type ChatTable struct {
	*Output

	// NoHeaders leaves the names of the columns out.
	NoHeaders  bool
	namespaces bool
	table      Table
}

// NewChatTable creates a table, with the namespaces of the chats if there are several.
func NewChatTable(o *Output, namespaces bool) *ChatTable {
	return &ChatTable{Output: o, namespaces: namespaces, table: Table{printers.GetNewTabWriter(o.Out)}}
}

// PrintList prints a list.
func (l *ChatTable) PrintList(list *v1beta1.ChatList) error {
	switch l.Format {
	case FormatJSON, FormatYAML:
		return l.Print(list)
	case FormatName:
	default:
		if !l.NoHeaders {
			l.heading()
		}
	}
	for i := range list.Items {
		l.row(&list.Items[i])
	}
	return l.table.Flush()
}

// PrintChange prints a chat that has changed.
func (l *ChatTable) PrintChange(chat *v1beta1.Chat) error {
	switch l.Format {
	case FormatYAML:
		fmt.Fprintln(l.Out, "---")
		fallthrough
	case FormatJSON:
		return l.Print(chat)
	}
	l.row(chat)
	return l.table.Flush()
}

func (l *ChatTable) heading() {
	columns := []string{"NAME", "PHASE", "REASON", "MODEL", "MSGS", "QUEUED", "COST", "WAITS FOR", "AGE", "TITLE"}
	if l.Format == FormatWide {
		columns = append(columns, "TOKENS", "PARENT", "TURN", "LAST REPLY")
	}
	if l.namespaces {
		columns = append([]string{"NAMESPACE"}, columns...)
	}
	l.table.Row(columns...)
}

func (l *ChatTable) row(chat *v1beta1.Chat) {
	if l.Format == FormatName {
		fmt.Fprintln(l.Out, ChatPrefix+chat.Name)
		return
	}
	st := &chat.Status
	cells := []string{chat.Name, string(st.Phase), reasonOf(chat), st.Model, strconv.FormatInt(st.History.Length, 10),
		strconv.Itoa(len(st.Queue)), costsOf(st.Cost), waitOf(chat),
		duration.HumanDuration(time.Since(chat.CreationTimestamp.Time)), st.Title}
	if l.Format == FormatWide {
		parent, turn := "", ""
		if chat.Spec.ParentRef != nil {
			parent = chat.Spec.ParentRef.Name
		}
		if st.Turn != nil {
			turn = st.Turn.Summary
		}
		cells = append(cells, strconv.FormatInt(st.Usage.TotalTokens, 10), parent, turn, st.LastReply)
	}
	if l.namespaces {
		cells = append([]string{chat.Namespace}, cells...)
	}
	for i := range cells {
		if cells[i] = terminal.EscapeLine(flat(cells[i])); cells[i] == "" {
			cells[i] = "<none>"
		}
	}
	l.table.Row(cells...)
}

func reasonOf(chat *v1beta1.Chat) string {
	if c := meta.FindStatusCondition(chat.Status.Conditions, v1beta1.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

// waitOf counts the calls that wait by what they need, or names what else the chat waits for.
func waitOf(chat *v1beta1.Chat) string {
	if required := chat.Status.RequiresAction; required != nil {
		counts := map[Need]int{}
		for i := range required.ToolCalls {
			counts[NeedOf(&required.ToolCalls[i])]++
		}
		var waits []string
		for _, need := range []Need{NeedsApproval, NeedsInput, NeedsResult} {
			if counts[need] > 0 {
				waits = append(waits, Plural(counts[need], string(need)))
			}
		}
		return strings.Join(waits, ", ")
	}
	if chat.Status.Wait != nil {
		return string(chat.Status.Wait.For)
	}
	return ""
}

// Spent is the usage and cost of a chat, model, ChatModelConfig or day.
type Spent struct {
	Of    string             `json:"of"`
	Usage v1beta1.TokenUsage `json:"usage"`
	Cost  []v1beta1.Cost     `json:"cost,omitempty"`
}

// Add adds usage and costs.
func (s *Spent) Add(u *v1beta1.TokenUsage, costs ...v1beta1.Cost) {
	s.Usage, s.Cost = s.Usage.Add(*u), cost.Total(s.Cost, costs)
}

// PrintSpent prints a table, with the sum of several rows below it.
func PrintSpent(out io.Writer, by string, all []Spent) error {
	table := newTable(out, strings.ToUpper(by), "INPUT", "CACHED", "OUTPUT", "TOTAL", "COST")
	row := func(of string, s *Spent) {
		number := func(n int64) string { return strconv.FormatInt(n, 10) }
		table.Row(of, number(s.Usage.InputTokens), number(s.Usage.CacheReadTokens), number(s.Usage.OutputTokens),
			number(s.Usage.TotalTokens), cmp.Or(costsOf(s.Cost), "<none>"))
	}
	sum := &Spent{}
	for i := range all {
		row(cmp.Or(terminal.EscapeLine(flat(all[i].Of)), "<unknown>"), &all[i])
		sum.Add(&all[i].Usage, all[i].Cost...)
	}
	if len(all) != 1 {
		row("SUM", sum)
	}
	return table.Flush()
}

// resultWords are the results of checks as people read them.
var resultWords = map[doctor.Result]string{
	doctor.OK: "ok", doctor.Warning: "warning", doctor.Failed: "failed", doctor.NotChecked: "not checked",
}

// PrintReport prints one line for each check, below the heading of its group, and the advice below the line.
func PrintReport(out io.Writer, r *doctor.Report) {
	group := ""
	for i := range r.Checks {
		f := &r.Checks[i]
		if f.Group != group {
			group = f.Group
			fmt.Fprintln(out, group)
		}
		fmt.Fprintf(out, "  %-11s  %s: %s\n", resultWords[f.Result], f.Check, terminal.EscapeLine(flat(f.Message)))
		if f.Advice != "" {
			fmt.Fprintf(out, "  %-11s  -> %s\n", "", terminal.EscapeLine(flat(f.Advice)))
		}
	}
	fmt.Fprintf(out, "\n%s: %d ok, %d failed, %s, %d not checked\n", Plural(len(r.Checks), "check"), r.Count(doctor.OK),
		r.Count(doctor.Failed), Plural(r.Count(doctor.Warning), "warning"), r.Count(doctor.NotChecked))
}
