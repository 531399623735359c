// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
)

func messagesOf(bytes int) []v1alpha1.ChatMessage {
	return []v1alpha1.ChatMessage{{Spec: v1alpha1.ChatMessageSpec{Content: strings.Repeat("x", bytes)}}}
}

func TestTheChatsThatWereUsedLastStay(t *testing.T) {
	k := newKept(3, 1<<20)
	for i := range 3 {
		k.put(fmt.Sprint(i), messagesOf(1))
	}
	k.get("0")
	k.put("3", messagesOf(1))
	for chat, want := range map[string]bool{"0": true, "1": false, "2": true, "3": true} {
		if got := k.get(chat) != nil; got != want {
			t.Errorf("chat %s is kept: %v, want %v", chat, got, want)
		}
	}
}

func TestWhatIsKeptIsBoundedInBytes(t *testing.T) {
	const limit = 100 << 10
	k := newKept(1000, limit)
	for i := range 100 {
		k.put(fmt.Sprint(i), messagesOf(10<<10))
		if k.bytes > limit {
			t.Fatalf("%d bytes are kept after chat %d", k.bytes, i)
		}
	}
	if n := k.order.Len(); n < 5 || n != len(k.entries) {
		t.Errorf("%d chats are kept in %d entries", n, len(k.entries))
	}
	k.put("99", messagesOf(1)) // one that shrinks gives its room back
	if before := k.bytes; before > limit-9<<10 {
		t.Errorf("%d bytes are kept", before)
	}
	k.put("huge", messagesOf(2*limit)) // the chat in use stays, however large
	if k.get("huge") == nil || k.order.Len() != 1 {
		t.Errorf("%d chats are kept beside one that fills the room", k.order.Len()-1)
	}
}

func TestEveryKindOfContentCounts(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, part := range map[string]v1alpha1.MessagePart{
		"text":     {Text: &long},
		"call":     {ToolCall: &v1alpha1.ToolCall{Input: long}},
		"result":   {ToolResult: &v1alpha1.ToolResult{Output: long}},
		"file":     {File: &v1alpha1.MessageFile{Data: long}},
		"metadata": {ProviderMetadata: long},
	} {
		got := sizeOf([]v1alpha1.ChatMessage{{Spec: v1alpha1.ChatMessageSpec{Parts: []v1alpha1.MessagePart{part}}}})
		if got != messageOverhead+1000 {
			t.Errorf("%s: %d bytes", name, got)
		}
	}
}
