// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestWhatIsKeptOfMessagesIsBounded(t *testing.T) {
	const big = 1 << 20
	for name, c := range map[string]struct{ messages, bytes, want int }{
		"by their number": {2 * cacheMessages, 1, cacheMessages},
		"by their bytes":  {2 * cacheBytes / big, big, cacheBytes / big},
		"one that is larger than all that is kept": {1, cacheBytes + 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMessages(nil, nil)
			data := make(json.RawMessage, c.bytes)
			for i := range c.messages {
				m.keep(fmt.Sprint(i), &follow.Committed{Base: 1, Data: data})
				m.lookup("0", 0) // What is used stays.
			}
			if got := m.known.Len(); got != c.want || m.bytes != c.want*c.bytes {
				t.Errorf("%d messages with %d bytes are kept, want %d", got, m.bytes, c.want)
			}
			check.Equal(t, "the message that is used is kept", c.want > 0, m.lookup("0", 0) != nil)
		})
	}
}

func TestOfAMessageTheNewestCommitIsKept(t *testing.T) {
	m := newMessages(nil, nil)
	for _, version := range []int64{2, 3, 1} {
		m.keep("a", &follow.Committed{Version: version, Data: make(json.RawMessage, version)})
	}
	if m.lookup("a", 3) == nil || m.lookup("a", 2) != nil || m.known.Len() != 1 || m.bytes != 3 {
		t.Errorf("%d messages with %d bytes are kept", m.known.Len(), m.bytes)
	}
}

func TestRecreatedMessageIsFetchedAgain(t *testing.T) {
	chat, output, fetches := chattest.Chat("c", chattest.UID("uid")), "4711", 0
	m := newMessages(func(_ context.Context, _, name string) (*v1beta1.ChatMessage, error) {
		fetches++
		return chattest.Brings("c", name, v1beta1.ToolResult{ID: "call_1", Output: output}), nil
	}, nil)
	get := func(version int64) string {
		chat.Status.History = v1beta1.HistoryStatus{Version: version, Head: "results", Length: 3}
		chat.Status.Internal.Tail = []v1beta1.CommittedMessage{{Message: "results", Position: 2, HistoryVersion: version}}
		message, err := m.Get(t.Context(), chat, follow.PlaceOf(chat, "results", 2, nil))
		check.OK(t, err)
		return string(message.Data)
	}
	check.Contains(t, get(3), "4711")
	output = "4712"
	check.Contains(t, get(3), "4711")
	check.Contains(t, get(5), "4712")
	check.Equal(t, "fetches", 2, fetches)
}

func TestRedactedMessageIsFetchedAgain(t *testing.T) {
	chat, output := chattest.Chat("c", chattest.UID("uid")), "hunter2"
	get := func(_ context.Context, _, name string) (*v1beta1.ChatMessage, error) {
		return chattest.Brings("c", name, v1beta1.ToolResult{ID: "call_1", Output: output}), nil
	}
	stale := func(context.Context, string, string) (*v1beta1.ChatMessage, error) {
		return chattest.Brings("c", "results", v1beta1.ToolResult{ID: "call_1", Output: "hunter2"}), nil
	}
	m := newMessages(get, stale)
	chat.Status.History = v1beta1.HistoryStatus{Version: 3, Head: "results", Length: 3}
	chat.Status.Internal.Tail = []v1beta1.CommittedMessage{{Message: "results", Position: 2, HistoryVersion: 3}}
	read := func() string {
		message, err := m.Get(t.Context(), chat, follow.PlaceOf(chat, "results", 2, nil))
		check.OK(t, err)
		return string(message.Data)
	}
	check.Contains(t, read(), "hunter2")
	output = "[redacted]"
	chat.Annotations = map[string]string{v1beta1.AnnotationRedacted: "2026-11-26T20:00:00Z", "other": "x"}
	chat = withoutTexts(chat) // As the gateway keeps it.
	check.Contains(t, read(), "[redacted]")
	check.Equal(t, "annotations that are kept", 1, len(chat.Annotations))
}
