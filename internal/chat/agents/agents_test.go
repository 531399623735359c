// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/agents"
)

const key = "8c1f8a5e-0000-4000-8000-000000000000.4.call_1"

func parent(change func(*v1beta1.ChatSpec)) *v1beta1.Chat {
	chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "root"}}
	chat.Labels = map[string]string{"a": "b"}
	change(&chat.Spec)
	return chat
}

func spawning(of v1beta1.AgentSpawn) *v1beta1.AgentChange {
	return &v1beta1.AgentChange{Key: key, Chat: agents.Name("root", key), Spawn: &of}
}

func TestSubChatInheritsOnlySharedParentSettings(t *testing.T) {
	from := parent(func(s *v1beta1.ChatSpec) {
		s.Prompt, s.Title, s.ChatClassName, s.SystemPrompt = "Do it all.", "All", "coder", "Be brief."
		s.ModelConfigRef, s.ReasoningEffort = &v1beta1.ModelConfigReference{Name: "small"}, v1beta1.EffortLow
		s.Limits = &v1beta1.ChatLimits{MaxSteps: new(int32(9))}
		s.Workspace, s.Advisor = &v1beta1.WorkspaceSource{}, &v1beta1.ChatAdvisor{Enabled: new(true)}
		s.SubAgents = &v1beta1.SubAgentSettings{Enabled: new(true)}
		s.Compaction = &v1beta1.CompactionPolicy{ThresholdPercent: new(int32(50))}
		s.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(60))}
		s.Suspend, s.Archived = true, true
		s.Tools = &v1beta1.ChatTools{
			Allow: []v1beta1.ToolPattern{"execute", "ask"}, Approval: []v1beta1.ToolPattern{"execute"},
			Client: []v1beta1.ClientTool{{Name: "ask"}}, StopAfter: []string{"ask"},
		}
	})
	before := from.DeepCopy()
	got := agents.Spawned(from,
		spawning(v1beta1.AgentSpawn{Type: v1beta1.AgentGeneral, Prompt: "Do this.", Title: "This"}))
	want := &v1beta1.Chat{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: agents.Name("root", key),
			Annotations: map[string]string{"parley.dev/spawned-by": key}},
		Spec: v1beta1.ChatSpec{
			Prompt: "Do this.", Title: "This", ChatClassName: "coder", SystemPrompt: "Be brief.",
			ParentRef:      &v1beta1.ChatReference{Name: "root"},
			ModelConfigRef: &v1beta1.ModelConfigReference{Name: "small"}, ReasoningEffort: v1beta1.EffortLow,
			Compaction: &v1beta1.CompactionPolicy{ThresholdPercent: new(int32(50))},
			Limits:     &v1beta1.ChatLimits{MaxSteps: new(int32(9))},
			Tools: &v1beta1.ChatTools{
				Allow: []v1beta1.ToolPattern{"execute"}, Approval: []v1beta1.ToolPattern{"execute"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff(before, from); diff != "" {
		t.Errorf("the parent has changed: %s", diff)
	}
	got = agents.Spawned(from, spawning(v1beta1.AgentSpawn{
		ModelConfigRef: &v1beta1.ModelConfigReference{Name: "strong"}, ReasoningEffort: v1beta1.EffortXHigh}))
	if got.Spec.ModelConfigRef.Name != "strong" || got.Spec.ReasoningEffort != v1beta1.EffortXHigh {
		t.Errorf("what was chosen is not %+v, %s", got.Spec.ModelConfigRef, got.Spec.ReasoningEffort)
	}
}

// Security (a hostile sub-chat): cannot have more tools than its parent, or chats of its own. Also
// TestSubChatInheritsOnlySharedParentSettings of internal/chat/agents; TestCallsReturnResultOrError of
// internal/tools/subagents.
func TestSubChatToolsAreLimitedToParentTools(t *testing.T) {
	patterns := func(of string) (all []v1beta1.ToolPattern) {
		for p := range strings.FieldsSeq(of) {
			all = append(all, v1beta1.ToolPattern(p))
		}
		return all
	}
	for name, c := range map[string]struct {
		tools       *v1beta1.ChatTools
		allow, deny string
	}{
		"of a chat that says nothing": {nil, "", ""},
		"of one that may read files":  {&v1beta1.ChatTools{Allow: patterns("read_file execute")}, "read_file execute", ""},
		"of one that is denied something": {
			&v1beta1.ChatTools{Deny: patterns("read_*")}, "", "read_*"},
		"of one that has only a client's": {
			&v1beta1.ChatTools{Allow: patterns("ask"), Client: []v1beta1.ClientTool{{Name: "ask"}}}, "", "*"},
	} {
		t.Run(name, func(t *testing.T) {
			from := parent(func(s *v1beta1.ChatSpec) { s.Tools = c.tools })
			got := agents.Spawned(from, spawning(v1beta1.AgentSpawn{Type: v1beta1.AgentGeneral})).Spec.Tools
			if got == nil {
				got = &v1beta1.ChatTools{}
			}
			if !slices.Equal(got.Allow, patterns(c.allow)) || !slices.Equal(got.Deny, patterns(c.deny)) {
				t.Errorf("it may call %v, and not %v", got.Allow, got.Deny)
			}
		})
	}
}

// Security (a model in mode Plan or Explore): cannot have agents that change something, whatever its class allows. Also
// TestAnAgentThatExploresActsUnderNoClass of test/e2e.
func TestExploreModeIsInheritedBySubChats(t *testing.T) {
	for _, c := range []struct {
		parent v1beta1.ChatMode
		kind   v1beta1.AgentType
		want   v1beta1.ChatMode
	}{
		{"", v1beta1.AgentGeneral, ""},
		{"", v1beta1.AgentExplore, v1beta1.ModeExplore},
		{v1beta1.ModeExplore, v1beta1.AgentGeneral, v1beta1.ModeExplore},
		{v1beta1.ModePlan, v1beta1.AgentGeneral, ""}, // The plan was approved: see spawn_agent.
		{v1beta1.ModePlan, v1beta1.AgentExplore, v1beta1.ModeExplore},
	} {
		from := parent(func(s *v1beta1.ChatSpec) { s.Mode = c.parent })
		if got := agents.Spawned(from, spawning(v1beta1.AgentSpawn{Type: c.kind})).Spec.Mode; got != c.want {
			t.Errorf("%s agent of a chat in mode %q: mode %q, want %q", c.kind, c.parent, got, c.want)
		}
	}
}

// Security (a hostile sub-chat): cannot take the name of another chat, by the name or the title that a model assigns.
func TestSubChatNameIsDeterministicAndValid(t *testing.T) {
	long := strings.Repeat("a", 188) + ".b-" + strings.Repeat("c", 9)
	for _, chat := range []string{"root", long} {
		name, other := agents.Name(chat, key), agents.Name(chat, key+"2")
		if name != agents.Name(chat, key) || name == other || len(name) > 200 || strings.Contains(name, "--") ||
			strings.Contains(name, ".-") || !strings.HasPrefix(name, chat[:4]) {
			t.Errorf("the names are %s and %s", name, other)
		}
	}
}

func TestMessageToSubChatHasUserRole(t *testing.T) {
	change := &v1beta1.AgentChange{Key: key, Chat: "root-1",
		Message: &v1beta1.AgentMessage{Content: "Stop.", Interrupts: true}}
	got := agents.Said(parent(func(*v1beta1.ChatSpec) {}), change)
	if got.Spec.Role != v1beta1.RoleUser || got.Spec.Content != "Stop." ||
		got.Spec.WhenBusy != v1beta1.WhenBusyInterrupt ||
		got.Spec.ChatRef.Name != "root-1" || !strings.HasPrefix(got.Name, "root-1-agent-") ||
		got.Namespace != "ns" {
		t.Errorf("it is %+v", got)
	}
	change.Message.Interrupts = false
	again := agents.Said(parent(func(*v1beta1.ChatSpec) {}), change)
	if again.Spec.WhenBusy != "" || again.Name != got.Name {
		t.Errorf("it is %+v", again)
	}
}
