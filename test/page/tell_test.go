// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"
)

// Events of a chat, as docs/reference/stream.md has them.

type fields = map[string]any

// noon is when all was said, so that pictures do not change.
var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func summary(name, phase, reason string, more fields) fields {
	out := fields{"name": name, "uid": "uid-" + name, "createdAt": noon, "phase": phase, "reason": reason, "ready": "Unknown",
		"length": 2, "model": "large", "since": noon}
	maps.Copy(out, more)
	return out
}

func message(index int, role string, more fields) event {
	name := fmt.Sprintf("m-%d", index)
	said := fields{"name": name, "uid": "uid-" + name, "role": role, "createdAt": noon.Add(time.Duration(index) * time.Minute)}
	if role == "Assistant" {
		said["model"] = fields{"config": "default", "provider": "anthropic", "name": "large"}
		said["usage"] = fields{"inputTokens": 2140, "outputTokens": 312}
		said["cost"] = fields{"currency": "USD", "microUnits": 11_100}
		said["outcome"] = "Completed"
	}
	if role == "User" {
		said["createdBy"] = "anna"
	} else {
		said["startedAt"], said["finishedAt"] = noon.Add(time.Duration(index-1)*time.Minute), said["createdAt"]
	}
	maps.Copy(said, more)
	return event{"message", fields{"historyVersion": index + 1, "index": index, "message": said}}
}

func user(index int, text string) event { return message(index, "User", fields{"content": text}) }

func assistant(index int, parts ...fields) event {
	return message(index, "Assistant", fields{"parts": parts})
}

func tool(index int, parts ...fields) event { return message(index, "Tool", fields{"parts": parts}) }

func text(words string) fields { return fields{"type": "Text", "text": words} }

func reasoning(words string) fields {
	return fields{"type": "Reasoning", "text": words, "startedAt": noon, "finishedAt": noon.Add(4200 * time.Millisecond)}
}

func call(id, name string, input any) fields {
	return fields{"type": "ToolCall", "toolCall": fields{"id": id, "name": name, "input": encoded(input)}}
}

func result(id, name string, output any) fields {
	return fields{"type": "ToolResult", "startedAt": noon, "finishedAt": noon.Add(1300 * time.Millisecond),
		"toolResult": fields{"id": id, "name": name, "output": encoded(output)}}
}

func encoded(v any) string {
	raw, _ := json.Marshal(v) // Tests make only what can be.
	return string(raw)
}

func status(phase, reason string, version int, more fields) event {
	out := fields{"phase": phase, "reason": reason, "historyVersion": version, "length": version, "model": "large"}
	maps.Copy(out, more)
	return event{"status", out}
}

func part(version, seq int, more fields) event {
	return event{"message_part", fields{"historyVersion": version, "attempt": 1, "seq": seq, "role": "Assistant", "part": more}}
}

func waitFor(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
