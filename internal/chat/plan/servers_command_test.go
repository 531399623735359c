// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// commanding is a chat with an MCP server that runs in its workspace, which stands so.
func commanding(t *testing.T, stands *Workspace) *world {
	t.Helper()
	w := newWorld(t)
	w.chat.Spec.MCPServers = []v1beta1.MCPServer{{Name: "memory", Command: []string{"server-memory"}}}
	w.facts = func(f *Facts) { f.HasWorkspace, f.Workspace = true, stands }
	return w
}

func TestCommandServerRequestsWorkspaceUnlessStoppedInTurn(t *testing.T) {
	command := v1beta1.MCPServer{Name: "s", Command: []string{"server"}}
	far := v1beta1.MCPServer{Name: "s", URL: "http://s/mcp"}
	stopped := func(after time.Duration) *v1beta1.ChatWorkspaceStatus {
		return &v1beta1.ChatWorkspaceStatus{StoppedAt: new(metav1.NewMicroTime(now.Add(after)))}
	}
	for name, c := range map[string]struct {
		server  v1beta1.MCPServer
		without bool
		status  *v1beta1.ChatWorkspaceStatus
		asks    bool
	}{
		"a server that runs there":                        {command, false, nil, true},
		"one that runs elsewhere":                         {far, false, nil, false},
		"a chat without a workspace":                      {command, true, nil, false},
		"a model that has stopped it in the turn":         {command, false, stopped(time.Second), false},
		"a model that has stopped it in one before":       {command, false, stopped(-time.Second), true},
		"a model that has chosen it, and not stopped any": {command, false, &v1beta1.ChatWorkspaceStatus{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := commanding(t, &Workspace{Starting: "the image is pulled"}).say("a").want("Running v1 a/1 - []")
			w.chat.Spec.MCPServers, w.chat.Status.Workspace = []v1beta1.MCPServer{c.server}, c.status
			got, err := Advance(Facts{Chat: w.chat, Model: w.f.Model, HasWorkspace: !c.without, Now: now})
			if err != nil || got.Asks.Workspace != c.asks {
				t.Errorf("it asks for %+v, %v", got.Asks, err)
			}
		})
	}
}

func TestGenerationWaitsForCommandServerWorkspaceOrTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		stands *Workspace
		after  time.Duration
		waits  bool
	}{
		"it starts":                              {&Workspace{Starting: "the image is pulled"}, 0, true},
		"it starts for almost a minute":          {&Workspace{Starting: "the image is pulled"}, 59 * time.Second, true},
		"it starts for a minute":                 {&Workspace{Starting: "the image is pulled"}, time.Minute, false},
		"it is ready, or a person has to see to": {&Workspace{}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := commanding(t, &Workspace{Starting: "the image is pulled"}).say("a").want("Running v1 a/1 - []").
				wantReason(v1beta1.ReasonWaitingForMCPServers)
			said := meta.FindStatusCondition(w.chat.Status.Conditions, v1beta1.ConditionReady).Message
			if !strings.HasSuffix(said, "the workspace in which they run: the image is pulled") {
				t.Errorf("it says %q", said)
			}
			want := "Running v1 a/1 1:GenerateAssistant []"
			if c.waits {
				want = "Running v1 a/1 - []"
			}
			w.facts = func(f *Facts) { f.HasWorkspace, f.Workspace = true, c.stands }
			if w.later(c.after).want(want); c.waits != (w.last.Again > 0) {
				t.Errorf("it looks again in %v", w.last.Again)
			}
		})
	}
}

func TestNextStepWaitsForLostWorkspace(t *testing.T) {
	w := commanding(t, &Workspace{}).say("a").answer(chattest.Calls("1")).want("Running v2 c-1-1/2 1:ExecuteTools []")
	lost := &Workspace{Starting: "its pod is gone", Since: now.Add(time.Hour)}
	w.facts = func(f *Facts) { f.HasWorkspace, f.Workspace = true, lost }
	w.later(time.Hour).answer(chattest.Results("1")).want("Running v3 c-2-1/3 - []")
	w.later(time.Minute).want("Running v3 c-2-1/3 1:GenerateAssistant []")
}
