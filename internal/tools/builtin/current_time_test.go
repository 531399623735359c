// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/builtin"
	"parley.dev/parley/test/kit/check"
)

func TestCurrentTimeReturnsTimeInZone(t *testing.T) {
	// Near midnight, so that the weekday depends on the zone, too.
	now := func() time.Time { return time.Date(2025, time.March, 2, 23, 30, 0, 0, time.UTC) }
	for name, c := range map[string]struct{ input, want, err string }{
		"without a zone":           {input: `{}`, want: `{"time":"2025-03-02T23:30:00Z","timezone":"UTC","weekday":"Sunday"}`},
		"with UTC":                 {input: `{"timezone":"UTC"}`, want: `{"time":"2025-03-02T23:30:00Z","timezone":"UTC","weekday":"Sunday"}`},
		"with a zone to the east":  {input: `{"timezone":"Europe/Berlin"}`, want: `{"time":"2025-03-03T00:30:00+01:00","timezone":"Europe/Berlin","weekday":"Monday"}`},
		"with half hours":          {input: `{"timezone":"Asia/Kolkata"}`, want: `{"time":"2025-03-03T05:00:00+05:30","timezone":"Asia/Kolkata","weekday":"Monday"}`},
		"with an unknown argument": {input: `{"city":"Rome"}`, want: `{"time":"2025-03-02T23:30:00Z","timezone":"UTC","weekday":"Sunday"}`},
		"with an unknown zone":     {input: `{"timezone":"Mars/Olympus"}`, err: "use an IANA name"},
		"with a path":              {input: `{"timezone":"../../etc/passwd"}`, err: "use an IANA name"},
		"with a number":            {input: `{"timezone":5}`, err: "reading the arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := builtin.CurrentTime{Now: now}.Run(t.Context(), tools.Call{ToolCall: v1alpha1.ToolCall{Input: c.input}})
			check.Equal(t, "time", c.want, got)
			check.Contains(t, fmt.Sprint(err), cmp.Or(c.err, "<nil>"))
		})
	}
}
