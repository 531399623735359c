// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"strings"
	"testing"
)

func TestWhatIsAsWantedAlreadyIsNoError(t *testing.T) {
	create := func(c *Client) error {
		return c.Create(t.Context(), "/api/v1/nodes", map[string]string{"kind": "Node"})
	}
	remove := func(c *Client) error { return c.Delete(t.Context(), "/api/v1/nodes/node1") }
	for name, tc := range map[string]struct {
		do     func(*Client) error
		status int
		want   string // part of the error; empty for none
	}{
		"created":          {create, 201, ""},
		"there already":    {create, 409, ""},
		"refused":          {create, 422, "422"},
		"deleted":          {remove, 200, ""},
		"gone already":     {remove, 404, ""},
		"not to be gone":   {remove, 403, "403"},
		"conflict in vain": {remove, 409, "409"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.do(serving(t, tc.status, "{}"))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestWatchReportsEachEventUntilItEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		events int
		want   string // part of the error; empty for none
	}{
		"it ends":       {200, `{"type":"ADDED"}` + "\n" + `{"type":"MODIFIED"}` + "\n", 2, ""},
		"it breaks off": {200, `{"type":"ADDED"}` + "\n" + `{"type":`, 1, "unexpected EOF"},
		"it is refused": {403, `{}`, 0, "403"},
	} {
		t.Run(name, func(t *testing.T) {
			events := 0
			err := serving(t, tc.status, tc.body).Watch(t.Context(), "/api/v1/nodes", func() { events++ })
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if events != tc.events {
				t.Errorf("%d events were told, want %d", events, tc.events)
			}
		})
	}
}

func TestAWatchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := serving(t, 200, "").Watch(ctx, "/api/v1/nodes", func() {}); err == nil {
		t.Error("it went on")
	}
}
