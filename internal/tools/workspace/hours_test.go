// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/kube/tokencache"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeworkspace"
)

// hourly renews the token of the client as generation pods do: the one that it is shown is good for an hour.
func hourly(t *testing.T, issued *time.Time) func(*client.Options) {
	t.Helper()
	cache := tokencache.New(func(context.Context, string) (string, time.Time, error) {
		*issued = time.Now()
		return fakeworkspace.Token, issued.Add(time.Hour), nil
	}, time.Now)
	return func(o *client.Options) {
		o.Token = func(ctx context.Context) (string, error) { return cache.Of(ctx, "workspace") }
	}
}

func TestFourHourCommandIsAwaitedUntilTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		lasts time.Duration
		want  map[string]any
	}{
		"it ends in time": {4*time.Hour - time.Minute, map[string]any{"success": true, "output": "begun\nended\n"}},
		"it does not": {5 * time.Hour, map[string]any{"success": false, "output": "begun\n",
			"error": "the command has not ended within 14400 s", "background_process_id": "p1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var issued time.Time
				b := inHours(t, hourly(t, &issued))
				b.agent.Before = func(w http.ResponseWriter, _ *http.Request) bool {
					if time.Since(issued) >= time.Hour {
						t.Errorf("it was shown a token of %s", issued)
						w.WriteHeader(http.StatusUnauthorized)
						return true
					}
					return false
				}
				b.agent.Run = func(p *fakeworkspace.Process) {
					p.Say("begun\n")
					lasting, stop := context.WithTimeout(context.Background(), c.lasts)
					defer stop()
					p.Ended(lasting)
					p.Say("ended\n")
					p.Exit(0)
				}
				began := time.Now()
				heard := began
				b.alive = func() {
					if silent := time.Since(heard); silent > tools.Silence/2 {
						t.Errorf("nothing was heard of the call for %s", silent)
					}
					heard = time.Now()
				}
				got := b.good("execute", `{"command":"make","timeout":14400}`)
				for field, want := range c.want {
					check.Equal(t, field, want, got[field])
				}
				if took, want := time.Since(began), min(c.lasts, 4*time.Hour); took < want || took > want+time.Minute {
					t.Errorf("the call took %s", took)
				}
				if silent := time.Since(heard); silent > tools.Silence/2 {
					t.Errorf("at the end nothing was heard of the call for %s", silent)
				}
			})
		})
	}
}

func TestAnAttemptHasTimeForTheLongestCall(t *testing.T) {
	// Before and after the wait there are requests to the API server and to the workspace, of some 30 s each.
	const besides = 10 * time.Minute
	if longest := maxTimeout*time.Second + besides; longest > attempts.ToolsTime {
		t.Errorf("a call may take %s, an attempt %s", longest, attempts.ToolsTime)
	}
}

func TestLostPodReportsUnknownOutcome(t *testing.T) {
	const look = "look there how far it came"
	for name, c := range map[string]struct {
		tool, input string
		want        map[string]any
		says        string
	}{
		"a command that is waited for": {"execute", `{"command":"make","timeout":600}`, map[string]any{"success": false,
			"error": "the workspace's pod was lost while the command ran, and what became of it is not known"}, look},
		"a look at a process": {"process_output", `{"process_id":"p1","wait_timeout":600}`, nil,
			"the workspace's pod is gone, and whether this was done is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := inHours(t, func(o *client.Options) { o.Gone = func(context.Context) bool { return true } })
				b.agent.Run = untilEnded
				b.agent.Before = func(_ http.ResponseWriter, r *http.Request) bool {
					lost := strings.Contains(r.URL.RawQuery, "wait=") // From now on nobody answers.
					if lost {
						<-r.Context().Done()
					}
					return lost
				}
				b.agent.Begin("k", "serve")
				began := time.Now()
				got, err := b.call(c.tool, c.input)
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("the call took %s", took)
				}
				for field, want := range c.want {
					check.Equal(t, field, want, got[field])
				}
				if said, _ := got["note"].(string); err == nil && !strings.Contains(said, c.says) || got["background_process_id"] != nil {
					t.Errorf("got %v", got)
				}
				if c.want == nil && (err == nil || !strings.HasPrefix(err.Error(), c.says)) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestCommandOfASilentWorkspaceKeepsItsProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inHours(t, func(o *client.Options) { o.Gone = func(context.Context) bool { return false } })
		b.agent.Run = untilEnded
		b.agent.Before = func(_ http.ResponseWriter, r *http.Request) bool {
			isWait := strings.Contains(r.URL.RawQuery, "wait=")
			if isWait {
				<-r.Context().Done()
			}
			return isWait
		}
		calls := []v1beta1.ToolCall{{ID: "call_1", Name: "execute", Input: `{"command":"make deploy","timeout":600}`}}
		results := tools.NewRegistry(b.tools["execute"]).Execute(t.Context(), &tools.Batch{Chat: b.chat, Calls: calls}, nil)
		var got map[string]any
		check.OK(t, json.Unmarshal([]byte(results[0].Output), &got))
		fields(t, got, map[string]any{"success": false, "background_process_id": "p1",
			"error": "the workspace has not answered for 1m0s", "note": containing("may still run")})
	})
}
