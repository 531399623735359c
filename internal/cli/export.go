// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli/prior"
)

// What an export can be.
const (
	outMarkdown = "md"
	outLines    = "jsonl"
)

func newExport(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "export CHAT",
		Short: "Print all that was said in a chat, as Markdown or JSON Lines",
		Long: "Prints a chat with all its messages and notes, in order: as Markdown for people (-o md, the default), or as " +
			"JSON Lines with all that a message is (-o jsonl), which kubectl chat import reads. The same chat is always " +
			"printed in the same way.",
		Example: "  kubectl chat export triage > triage.md\n  kubectl chat export triage -o jsonl > triage.jsonl",
		Args:    cobra.ExactArgs(1),
		RunE: o.connected(func(ctx context.Context, s *session, args []string) error {
			return exportChat(ctx, s, args[0])
		}, outMarkdown, outLines),
	}
}

// exported is a chat with all that was said in it.
type exported struct {
	header  exportedChat
	entries []exportedEntry
}

// exportedChat is the first line of an export.
type exportedChat struct {
	// Type is "chat".
	Type      string            `json:"type"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	UID       string            `json:"uid"`
	Labels    map[string]string `json:"labels,omitempty"`
	CreatedAt metav1.Time       `json:"createdAt"`
	// Title and Model are the chat's by now.
	Title  string `json:"title,omitempty"`
	Model  string `json:"model,omitempty"`
	Parent string `json:"parent,omitempty"`
	// SubChats are the chats below it, by name.
	SubChats []string `json:"subChats,omitempty"`
	// Messages is how many there are, and ContextStart the index of the first that the model sees.
	Messages     int64               `json:"messages"`
	ContextStart int64               `json:"contextStart,omitempty"`
	Usage        v1alpha1.TokenUsage `json:"usage,omitzero"`
	Cost         []v1alpha1.Cost     `json:"cost,omitempty"`
	// Error is why the last turn failed.
	Error *stream.Error `json:"error,omitempty"`
}

// exportedEntry is a message, or a note before the message of that index.
type exportedEntry struct {
	// Type is "message" or "note".
	Type  string `json:"type"`
	Index int64  `json:"index"`
	stream.Message
}

func exportChat(ctx context.Context, s *session, name string) error {
	t, err := s.Snapshot(ctx, name, 0)
	if err != nil {
		return err
	}
	children, err := s.Chats().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the sub-chats: %w", err)
	}
	e := exported{header: headerOf(t.Chat, children.Items)}
	if err := e.add(t.Events); err != nil {
		return err
	}
	if s.Format == outLines {
		return e.lines(s.Out)
	}
	_, err = fmt.Fprint(s.Out, e.markdown())
	return err
}

func headerOf(chat *v1alpha1.Chat, others []v1alpha1.Chat) exportedChat {
	st := &chat.Status
	h := exportedChat{Type: prior.TypeChat, Namespace: chat.Namespace, Name: chat.Name, UID: string(chat.UID),
		Labels: chat.Labels, CreatedAt: chat.CreationTimestamp, Title: st.Title, Model: st.Model, Messages: st.History.Length,
		ContextStart: st.History.ContextStart, Usage: st.Usage, Cost: st.Cost}
	if chat.Spec.ParentRef != nil {
		h.Parent = chat.Spec.ParentRef.Name
	}
	for i := range others {
		if ref := others[i].Spec.ParentRef; ref != nil && ref.Name == chat.Name {
			h.SubChats = append(h.SubChats, others[i].Name)
		}
	}
	slices.Sort(h.SubChats)
	return h
}

// add takes the story of a chat.
func (e *exported) add(events []stream.Event) error {
	for _, event := range events {
		switch event.Name {
		case stream.EventMessage:
			m, err := stream.Decode[stream.MessageCommitted](event)
			if err != nil {
				return err
			}
			e.entries = append(e.entries, exportedEntry{prior.TypeMessage, m.Index, m.Message})
		case stream.EventNote:
			n, err := stream.Decode[stream.Note](event)
			if err != nil {
				return err
			}
			e.entries = append(e.entries, exportedEntry{prior.TypeNote, n.Index, n.Message})
		case stream.EventError:
			failed, err := stream.Decode[stream.Error](event)
			if err != nil {
				return err
			}
			e.header.Error = failed
		}
	}
	return nil
}

// lines prints one JSON object a line: the chat, then its messages and notes.
func (e *exported) lines(to io.Writer) error {
	if err := printJSON(to, e.header); err != nil {
		return err
	}
	for i := range e.entries {
		if err := printJSON(to, e.entries[i]); err != nil {
			return err
		}
	}
	return nil
}
