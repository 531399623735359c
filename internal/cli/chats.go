// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	"parley.dev/parley/api/v1alpha1"
)

// ChatTable prints chats as rows of a table, or as programs ask for.
type ChatTable struct {
	*Output

	namespaces bool
	table      Table
}

// newChatTable is one with the namespaces of the chats, if there are several.
func newChatTable(o *Output, namespaces bool) *ChatTable {
	return &ChatTable{Output: o, namespaces: namespaces, table: newTable(o.Out)}
}

// all prints a list.
func (l *ChatTable) all(list *v1alpha1.ChatList) error {
	switch l.Format {
	case outJSON, outYAML:
		return l.Print(list)
	case outName:
	default:
		l.heading()
	}
	for i := range list.Items {
		l.row(&list.Items[i])
	}
	return l.table.Flush()
}

// one prints a chat that has changed.
func (l *ChatTable) one(chat *v1alpha1.Chat) error {
	switch l.Format {
	case outYAML:
		fmt.Fprintln(l.Out, "---")
		fallthrough
	case outJSON:
		return l.Print(chat)
	}
	l.row(chat)
	return l.table.Flush()
}

func (l *ChatTable) heading() {
	columns := []string{"NAME", "PHASE", "REASON", "MODEL", "MSGS", "QUEUED", "COST", "WAITS FOR", "AGE", "TITLE"}
	if l.Format == outWide {
		columns = append(columns, "TOKENS", "PARENT", "TURN", "LAST REPLY")
	}
	if l.namespaces {
		columns = append([]string{"NAMESPACE"}, columns...)
	}
	l.table.Row(columns...)
}

func (l *ChatTable) row(chat *v1alpha1.Chat) {
	if l.Format == outName {
		fmt.Fprintln(l.Out, chatNamed+chat.Name)
		return
	}
	st := &chat.Status
	cells := []string{chat.Name, string(st.Phase), reasonOf(chat), st.Model, strconv.FormatInt(st.History.Length, 10),
		strconv.Itoa(len(st.Queue)), costsOf(st.Cost), waitOf(chat),
		duration.HumanDuration(time.Since(chat.CreationTimestamp.Time)), st.Title}
	if l.Format == outWide {
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
		if cells[i] = escapeLine(flat(cells[i])); cells[i] == "" {
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
			said = append(said, plural(counts[w], string(w)))
		}
	}
	return strings.Join(said, ", ")
}
