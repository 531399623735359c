// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/protocol"
)

// keyed is a tool that answers with the id and the key of its call.
type keyed struct{ tool }

func (keyed) Run(_ context.Context, call tools.Call) (string, error) {
	return call.ID + "|" + call.Key, nil
}

// keys are the keys that calls with these ids get.
func keys(t *testing.T, uid string, reply int64, ids ...string) []string {
	t.Helper()
	batch := &tools.Batch{Chat: &v1alpha1.Chat{}, Reply: reply}
	batch.Chat.UID = types.UID(uid)
	for _, id := range ids {
		batch.Calls = append(batch.Calls, v1alpha1.ToolCall{ID: id, Name: "keyed"})
	}
	var keys []string
	for i, result := range tools.NewRegistry(keyed{tool{"keyed", echo}}).Execute(t.Context(), batch, nil) {
		key, ok := strings.CutPrefix(result.Output, ids[i]+"|")
		if !ok {
			t.Errorf("the tool was told %q of call %q", result.Output, ids[i])
		}
		keys = append(keys, key)
	}
	return keys
}

func TestCallKeyIsUniqueValidAndStable(t *testing.T) {
	const uid = "0f0f0f0f-0000-4000-8000-000000000001"
	if got := keys(t, uid, 7, "call_1"); got[0] != uid+".7.call_1" {
		t.Errorf("got %s", got[0])
	}
	long := strings.Repeat("x", 65)
	unlike := []string{"call_1", "call-1", "CALL_1", "a/b", "a b", "..", "", "\x00", "ключ", long, long + "y",
		"." + strings.Repeat("0", 64), fmt.Sprintf("%x", sha256.Sum256([]byte("a/b")))}
	seen := map[string]string{}
	for _, of := range []struct {
		uid   string
		reply int64
	}{{uid, 7}, {uid, 8}, {uid, 0}, {"another", 7}, {"", 7}, {strings.Repeat("u", 400), 1 << 62}} {
		for i, key := range keys(t, of.uid, of.reply, unlike...) {
			if !protocol.ValidKey(key) {
				t.Errorf("%q of %v has the key %q, which is not valid", unlike[i], of, key)
			}
			if other := seen[key]; other != "" {
				t.Errorf("%q of %v has the key of %q", unlike[i], of, other)
			}
			seen[key] = unlike[i]
		}
	}
	if first, second := keys(t, uid, 7, unlike...), keys(t, uid, 7, unlike...); strings.Join(first, " ") !=
		strings.Join(second, " ") {
		t.Errorf("the keys were %v, and then %v", first, second)
	}
}

func TestCallWithKnownResultIsNotExecuted(t *testing.T) {
	ran := func(context.Context, string) (string, error) { return "ran", nil }
	registry := tools.NewRegistry(tool{"a", ran}, with{alone, tool{"alone", ran}})
	calls := []v1alpha1.ToolCall{{ID: "1", Name: "a"}, {ID: "2", Name: "a"}, {ID: "3", Name: "a"}}
	known := map[string]v1alpha1.ToolResult{"2": {ID: "2", Name: "a", Output: "known", IsError: true}}
	results := registry.Execute(t.Context(), &tools.Batch{Chat: &v1alpha1.Chat{}, Calls: calls, Known: known},
		func(ctx context.Context, call *tools.Call, run func(context.Context) v1alpha1.ToolResult) v1alpha1.ToolResult {
			if call.ID == "2" {
				t.Error("a call was observed that was not run")
			}
			return run(ctx)
		})
	if results[0].Output != "ran" || results[1] != known["2"] || results[2].Output != "ran" {
		t.Errorf("got %+v", results)
	}
	calls[2].Name = "alone"
	results = registry.Execute(t.Context(), &tools.Batch{Chat: &v1alpha1.Chat{}, Calls: calls, Known: known}, nil)
	if !results[0].IsError || !results[2].IsError {
		t.Errorf("calls in conflict were run: %+v", results)
	}
}
