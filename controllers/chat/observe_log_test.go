// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
)

// logged are the lines of a level that the first write of a chat logs, whose prompt is about to be answered.
func logged(t *testing.T, level slog.Level) (lines []map[string]any, text string) {
	t.Helper()
	chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "u", ResourceVersion: "7"}}
	model := &plan.Model{Alternative: plan.Alternative{Config: "default", Name: "gpt"}, ThresholdPercent: 100}
	todo, err := plan.Advance(plan.Facts{
		Chat: chat, Model: model, Now: now,
		Open: []plan.Message{{Name: "m", ContentHash: "h", FirstWords: "What nobody else may read"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	chat.Status = todo.Status
	var out bytes.Buffer
	logger := logr.FromSlogHandler(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level}))
	logWrite(log.IntoContext(t.Context(), logger), chat, &todo)
	for line := range strings.Lines(out.String()) {
		var values map[string]any
		if err := json.Unmarshal([]byte(line), &values); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, values)
	}
	return lines, out.String()
}

func TestEachTransitionAndEachWriteIsLogged(t *testing.T) {
	lines, text := logged(t, slog.LevelDebug)
	var events []string
	for _, line := range lines {
		if event, ok := line["event"].(string); ok {
			events = append(events, event)
		}
	}
	if want := []string{"Create", "RecordAttempt"}; !slices.Equal(events, want) {
		t.Errorf("the events are %v, want %v, in\n%s", events, want, text)
	}
	write := lines[len(lines)-1]
	for key, want := range map[string]any{
		"chatUID": "u", "resourceVersion": "7", "phase": "Running", "historyVersion": 1.0, "action": "GenerateAssistant",
		"attempt": 1.0,
	} {
		if write[key] != want {
			t.Errorf("the write has %s %v, want %v", key, write[key], want)
		}
	}
	if strings.Contains(text, "nobody else") {
		t.Errorf("what was said is in the log:\n%s", text)
	}
}

func TestANormalTurnIsNotLogged(t *testing.T) {
	if lines, text := logged(t, slog.LevelInfo); len(lines) > 0 {
		t.Errorf("logged is\n%s", text)
	}
}
