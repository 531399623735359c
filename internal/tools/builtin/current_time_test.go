// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"strings"
	"testing"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/builtin"
)

func TestCurrentTimeTellsTheTimeInAZone(t *testing.T) {
	// Near midnight, so that the weekday depends on the zone, too.
	now := func() time.Time { return time.Date(2025, time.March, 2, 23, 30, 0, 0, time.UTC) }
	cases := map[string]struct {
		input, want, err string
	}{
		"without a zone": {input: `{}`, want: `{"time":"2025-03-02T23:30:00Z","timezone":"UTC","weekday":"Sunday"}`},
		"with UTC": {input: `{"timezone":"UTC"}`,
			want: `{"time":"2025-03-02T23:30:00Z","timezone":"UTC","weekday":"Sunday"}`},
		"with a zone to the east": {input: `{"timezone":"Europe/Berlin"}`,
			want: `{"time":"2025-03-03T00:30:00+01:00","timezone":"Europe/Berlin","weekday":"Monday"}`},
		"with a zone of half hours": {
			input: `{"timezone":"Asia/Kolkata"}`,
			want:  `{"time":"2025-03-03T05:00:00+05:30","timezone":"Asia/Kolkata","weekday":"Monday"}`,
		},
		"with a zone that nobody knows": {input: `{"timezone":"Mars/Olympus"}`, err: "use an IANA name"},
		"with a path instead of a zone": {input: `{"timezone":"../../etc/passwd"}`, err: "use an IANA name"},
		"with a zone that is no text":   {input: `{"timezone":5}`, err: "reading the arguments"},
		"with an argument of no meaning": {input: `{"city":"Rome"}`,
			want: `{"time":"2025-03-02T23:30:00Z","timezone":"UTC","weekday":"Sunday"}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := builtin.CurrentTime{Now: now}.Run(t.Context(), tools.Call{ToolCall: v1alpha1.ToolCall{Input: c.input}})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got error %v", err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestCurrentTimeDescribesItself(t *testing.T) {
	tool := builtin.CurrentTime{}
	properties, _ := tool.Definition().InputSchema["properties"].(map[string]any)
	if tool.Definition().Name != "current_time" || tool.Definition().Description == "" || tool.Definition().InputSchema["type"] != "object" ||
		properties["timezone"] == nil {
		t.Errorf("got %q, %q, %v", tool.Definition().Name, tool.Definition().Description, tool.Definition().InputSchema)
	}
}
