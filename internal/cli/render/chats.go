// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli/terminal"
)

// ChatTable prints chats as rows of a table, or as programs ask for.
type ChatTable struct {
	*Output

	namespaces bool
	table      Table
}

// NewChatTable is one with the namespaces of the chats, if there are several.
func NewChatTable(o *Output, namespaces bool) *ChatTable {
	return &ChatTable{Output: o, namespaces: namespaces, table: newTable(o.Out)}
}

// PrintList prints a list.
func (l *ChatTable) PrintList(list *v1alpha1.ChatList) error {
	switch l.Format {
	case FormatJSON, FormatYAML:
		return l.Print(list)
	case FormatName:
	default:
		l.heading()
	}
	for i := range list.Items {
		l.row(&list.Items[i])
	}
	return l.table.Flush()
}

// PrintChange prints a chat that has changed.
func (l *ChatTable) PrintChange(chat *v1alpha1.Chat) error {
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

func (l *ChatTable) row(chat *v1alpha1.Chat) {
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

// reasonOf is why the chat is Ready or not; what holds it comes first.
func reasonOf(chat *v1alpha1.Chat) string {
	if c := meta.FindStatusCondition(chat.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

// waitOf says how many calls wait for whom, or what else the chat waits for.
func waitOf(chat *v1alpha1.Chat) string {
	switch {
	case chat.Status.RequiresAction != nil:
	case chat.Status.Wait != nil:
		return string(chat.Status.Wait.For)
	default:
		return ""
	}
	counts := map[Need]int{}
	for i := range chat.Status.RequiresAction.ToolCalls {
		counts[NeedOf(&chat.Status.RequiresAction.ToolCalls[i])]++
	}
	var said []string
	for _, w := range []Need{NeedsApproval, NeedsInput, NeedsResult} {
		if counts[w] > 0 {
			said = append(said, Plural(counts[w], string(w)))
		}
	}
	return strings.Join(said, ", ")
}
