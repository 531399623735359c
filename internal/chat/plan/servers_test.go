// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

var toTracker = v1beta1.MCPServerReference{Group: "mcp.x-k8s.io", Kind: "MCPServer", Name: "tracker"}

// referring is a chat with a message that refers to an MCP server.
func referring(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.chat.Spec.MCPServers = []v1beta1.MCPServer{{Name: "tracker", ServerRef: &toTracker}}
	return w
}

func ready(url string) Server {
	return Server{MCPServerAddress: v1beta1.MCPServerAddress{Name: "tracker", Ref: toTracker, URL: url}}
}

func notReady(reason v1beta1.MCPServerReason, starting bool) Server {
	return Server{Starting: starting, MCPServerAddress: v1beta1.MCPServerAddress{Name: "tracker", Ref: toTracker,
		Reason: reason, Message: "MCPServer tracker: it has no condition Verified yet"}}
}

// find has the chat find the server like that, from now on.
func (w *world) find(s Server) *world {
	w.facts = func(f *Facts) { f.Servers = []Server{s} }
	return w
}

func TestAnAttemptIsToldWhereTheServersAre(t *testing.T) {
	w := referring(t).find(ready("http://10.0.0.1/mcp")).say("a").want("Running v1 a/1 1:GenerateAssistant []")
	if told := w.chat.Status.Internal.MCPServers; len(told) != 1 || told[0].URL != "http://10.0.0.1/mcp" {
		t.Errorf("it is told %+v", told)
	}
	// The next step is told what holds then.
	w.find(ready("http://10.0.0.2/mcp")).answer(chattest.Calls("1")).want("Running v2 c-1-1/2 1:ExecuteTools []")
	if told := w.chat.Status.Internal.MCPServers; len(told) != 1 || told[0].URL != "http://10.0.0.2/mcp" {
		t.Errorf("the next step is told %+v", told)
	}
}

func TestCallsDoNotWaitForServers(t *testing.T) {
	w := referring(t).find(ready("http://10.0.0.1/mcp")).say("a")
	w.find(notReady(v1beta1.MCPNotReady, true)).answer(chattest.Calls("1")).want("Running v2 c-1-1/2 1:ExecuteTools []")
}

func TestUnreadyServerDelaysOnlyOneStep(t *testing.T) {
	w := referring(t).find(notReady(v1beta1.MCPNotReady, true)).say("a").want("Running v1 a/1 - []")
	w.later(ServerPatience).want("Running v1 a/1 1:GenerateAssistant []").answer(chattest.Says("Without it."))
	w.say("b").want("Running v3 b/3 1:GenerateAssistant []")
	// Another one is waited for, also one of the same name.
	other := notReady(v1beta1.MCPNotReady, true)
	other.Ref.Group = "kagent.dev"
	w.find(other).answer(chattest.Says("Without it.")).later(time.Second).say("b2").want("Running v5 b2/5 - []")
	w.later(ServerPatience)
	// One that was ready meanwhile is waited for again.
	w.find(ready("http://10.0.0.1/mcp")).answer(chattest.Says("Fine.")).say("c")
	w.find(notReady(v1beta1.MCPNotReady, true)).answer(chattest.Says("Fine.")).later(time.Second).say("d").
		want("Running v9 d/9 - []").wantReason(v1beta1.ReasonWaitingForMCPServers)
}

func TestOnlyServersThatHoldATurnArePolled(t *testing.T) {
	w := referring(t).find(notReady(v1beta1.MCPNotReady, true)).say("a").want("Running v1 a/1 - []")
	if w.last.Again != ServerPoll {
		t.Errorf("a turn that waits for its server looks again in %s", w.last.Again)
	}
	w.chat.Spec.Suspend = true
	w.pass(func(f *Facts) { f.Suspended = true }).wantReason(v1beta1.ReasonSuspended)
	if w.last.Again == ServerPoll {
		t.Error("a suspended turn looks at its server")
	}
}

func TestGenerationWaitsForMCPServersOrTimeout(t *testing.T) {
	starting := notReady(v1beta1.MCPNotReady, true)
	for name, c := range map[string]struct {
		server Server
		after  time.Duration
		waits  bool
	}{
		"it starts":                       {starting, 0, true},
		"it starts for almost a minute":   {starting, 59 * time.Second, true},
		"it starts for a minute":          {starting, time.Minute, false},
		"it may still be created":         {notReady(v1beta1.MCPReferenceNotFound, true), 9 * time.Second, true},
		"it was not created":              {notReady(v1beta1.MCPReferenceNotFound, true), 10 * time.Second, false},
		"its kind is not there":           {notReady(v1beta1.MCPReferenceNotFound, false), 0, false},
		"the manager may not read it":     {notReady(v1beta1.MCPReferenceForbidden, false), 0, false},
		"it is ready":                     {ready("http://10.0.0.1/mcp"), 0, false},
		"its address can never be called": {notReady(v1beta1.MCPAddressInvalid, false), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := referring(t).find(starting).say("a").want("Running v1 a/1 - []").
				wantReason(v1beta1.ReasonWaitingForMCPServers)
			said := meta.FindStatusCondition(w.chat.Status.Conditions, v1beta1.ConditionReady).Message
			if !strings.HasSuffix(said, "tracker: MCPServer tracker: it has no condition Verified yet") {
				t.Errorf("it says %q", said)
			}
			want := "Running v1 a/1 1:GenerateAssistant []"
			if c.waits {
				want = "Running v1 a/1 - []"
			}
			if w.find(c.server).later(c.after).want(want); c.waits != (w.last.Again > 0) {
				t.Errorf("it looks again in %v", w.last.Again)
			}
		})
	}
}
