// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package subagents_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/agents"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/subagents"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

const key = "8c1f8a5e-0000-4000-8000-000000000000.4.call_1"

// world is a namespace with chats and ChatModelConfigs.
type world struct {
	chats   []*v1beta1.Chat
	configs []*v1beta1.ChatModelConfig
	broken  error
}

func get[T metav1.Object](w *world, all []T, name string) (found T, err error) {
	i := slices.IndexFunc(all, func(o T) bool { return o.GetName() == name })
	if w.broken != nil || i < 0 {
		return found, cmp.Or(w.broken, error(apierrors.NewNotFound(schema.GroupResource{}, name)))
	}
	return all[i], nil
}

func (w *world) run(t *testing.T, root *v1beta1.Chat, name, input string) (string, error) {
	t.Helper()
	for _, tool := range subagents.Tools(subagents.Options{
		Chat: func(_ context.Context, name string) (*v1beta1.Chat, error) { return get(w, w.chats, name) },
		Config: func(_ context.Context, name string) (*v1beta1.ChatModelConfig, error) {
			return get(w, w.configs, name)
		},
		Chats: func(_ context.Context, options metav1.ListOptions) (*v1beta1.ChatList, error) {
			list := &v1beta1.ChatList{}
			for _, chat := range w.chats {
				if chat.Spec.ParentRef != nil && options.FieldSelector == "spec.parentRef.name="+chat.Spec.ParentRef.Name {
					list.Items = append(list.Items, *chat)
				}
			}
			return list, w.broken
		},
	}) {
		if tool.Definition().Name == name {
			return tool.Run(t.Context(), tools.Call{ToolCall: v1beta1.ToolCall{ID: "call_1", Input: input}, Key: key,
				Chat: root})
		}
	}
	t.Fatalf("there is no tool %s", name)
	return "", nil
}

func starter(change ...func(*v1beta1.Chat)) *v1beta1.Chat {
	return chattest.Chat("root", append([]func(*v1beta1.Chat){func(c *v1beta1.Chat) {
		c.Spec.SubAgents = &v1beta1.SubAgentSettings{Enabled: new(true),
			ModelConfigs: []v1beta1.ModelConfigReference{{Name: "strong"}, {Name: "gone"}, {Name: "off"}}}
		c.Status.Generation = &v1beta1.GenerationStatus{ModelConfig: "small"}
	}}, change...)...)
}

func family() *world {
	below := chattest.Chat("sub", chattest.ChildOf("root"))
	below.Status.Phase, below.Status.Title, below.Status.LastReply = v1beta1.ChatRunning, "Look", "Well,…"
	below.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Reason: "Generating"}}
	idle := chattest.Chat("idle", chattest.ChildOf("root"))
	idle.Status.Phase, idle.CreationTimestamp = v1beta1.ChatWaiting, metav1.NewTime(time.Unix(9, 0))
	archived := chattest.Chat("archived", chattest.ChildOf("root"))
	archived.Status.Archived = true
	off := chattest.Config("off", func(s *v1beta1.ChatModelConfigSpec) { s.Disabled = true })
	return &world{
		chats:   []*v1beta1.Chat{starter(), below, idle, archived, chattest.Chat("other")},
		configs: []*v1beta1.ChatModelConfig{chattest.Config("small"), chattest.Config("strong"), off},
	}
}

// Security (a hostile sub-chat): cannot send a message to a chat that is not below it, or interrupt one. Also
// TestManagerMayOnlyStartAndInterruptSubChats of test/admission.
func TestCallsReturnResultOrError(t *testing.T) {
	limited := func(c *v1beta1.Chat) { c.Spec.Limits = &v1beta1.ChatLimits{MaxSubChats: new(int32(2))} }
	flat := func(c *v1beta1.Chat) { c.Spec.Limits = &v1beta1.ChatLimits{MaxDepth: new(int32(0))} }
	off := func(c *v1beta1.Chat) { c.Spec.SubAgents.Enabled = new(false) }
	name := agents.Name("root", key)
	for of, c := range map[string]struct {
		tool, input string
		root        *v1beta1.Chat
		want, wrong string
	}{
		"it starts one": {"spawn_agent", `{"type":"general","prompt":"Look for the bug in the parser please."}`, starter(),
			`{"chat":"` + name + `","title":"Look for the bug in the…","type":"general","status":"started"}`, ""},
		"it gives a title that is no line": {"spawn_agent", `{"type":"explore","prompt":"x","title":" a\n\u001b[1mb "}`, starter(),
			`"title":"a [1mb","type":"explore"`, ""},
		"it chooses a model":             {"spawn_agent", `{"type":"general","prompt":"x","model_config_id":"strong"}`, starter(), name, ""},
		"it chooses its own":             {"spawn_agent", `{"type":"general","prompt":"x","model_config_id":"small"}`, starter(), name, ""},
		"it chooses one that is no":      {"spawn_agent", `{"type":"general","prompt":"x","model_config_id":"dear"}`, starter(), "", `"dear" is no model for agents of yours`},
		"it chooses one that is gone":    {"spawn_agent", `{"type":"general","prompt":"x","model_config_id":"gone"}`, starter(), "", "cannot be used"},
		"it chooses one that is off":     {"spawn_agent", `{"type":"general","prompt":"x","model_config_id":"off"}`, starter(), "", "cannot be used"},
		"it wants an effort that is no":  {"spawn_agent", `{"type":"general","prompt":"x","reasoning_effort":"lots"}`, starter(), "", "reasoning_effort"},
		"it gives no task":               {"spawn_agent", `{"type":"general","prompt":" \u200b\n"}`, starter(), "", "prompt is blank"},
		"it wants another type":          {"spawn_agent", `{"type":"computer_use","prompt":"x"}`, starter(), "", "type"},
		"it has as many as it may":       {"spawn_agent", `{"type":"general","prompt":"x"}`, starter(limited), "", "you have 2 agents, and may have 2 (spec.limits.maxSubChats)"},
		"it may have none at all":        {"spawn_agent", `{"type":"general","prompt":"x"}`, starter(flat), "", "maxDepth is 0"},
		"it may start none":              {"spawn_agent", `{"type":"general","prompt":"x"}`, starter(off), "", "this chat starts no agents"},
		"a sub-chat may start none":      {"spawn_agent", `{"type":"general","prompt":"x"}`, starter(chattest.ChildOf("above")), "", "this chat starts no agents"},
		"it says something":              {"message_agent", `{"chat":"sub","message":"And?"}`, starter(), `{"chat":"sub","status":"sent"}`, ""},
		"it says nothing":                {"message_agent", `{"chat":"sub","message":" "}`, starter(), "", "message is blank"},
		"it talks to another root":       {"message_agent", `{"chat":"other","message":"x"}`, starter(), "", `there is no agent "other" of yours`},
		"it talks to itself":             {"message_agent", `{"chat":"root","message":"x"}`, starter(), "", `there is no agent "root" of yours`},
		"it talks to a path":             {"message_agent", `{"chat":"../sub","message":"x"}`, starter(), "", `there is no agent "../sub" of yours`},
		"it talks to an archived one":    {"message_agent", `{"chat":"archived","message":"x"}`, starter(), "", "is archived"},
		"it interrupts one at work":      {"interrupt_agent", `{"chat":"sub"}`, starter(), `{"chat":"sub","status":"interrupted"}`, ""},
		"it interrupts an idle one":      {"interrupt_agent", `{"chat":"idle"}`, starter(), `{"chat":"idle","status":"idle"}`, ""},
		"it interrupts another root":     {"interrupt_agent", `{"chat":"other"}`, starter(), "", "no agent"},
		"it lists them":                  {"list_agents", `{}`, starter(), `{"agents":[{"chat":"idle","phase":"Waiting"},{"chat":"sub","title":"Look","phase":"Running","reason":"Generating","last_reply":"Well,…"}],"total":2}`, ""},
		"it lists the second":            {"list_agents", `{"limit":1,"offset":1}`, starter(), `{"agents":[{"chat":"sub"`, ""},
		"it lists behind the last":       {"list_agents", `{"offset":9}`, starter(), `{"agents":[],"total":2}`, ""},
		"it lists the models":            {"list_subagent_models", `{}`, starter(), `{"models":[{"model_config_id":"small","model":`, ""},
		"it knows no argument of theirs": {"list_subagent_models", `{"all":true}`, starter(), "", "all"},
	} {
		t.Run(of, func(t *testing.T) {
			got, err := family().run(t, c.root, c.tool, c.input)
			check.Contains(t, got, c.want)
			check.Contains(t, fmt.Sprint(err), cmp.Or(c.wrong, "<nil>"))
		})
	}
}

func TestAPIServerErrorTextIsHiddenFromModel(t *testing.T) {
	for name, input := range map[string]string{
		"spawn_agent": `{"type":"general","prompt":"x"}`, "message_agent": `{"chat":"sub","message":"x"}`,
		"interrupt_agent": `{"chat":"sub"}`, "list_agents": `{}`, "list_subagent_models": `{}`,
	} {
		w := family()
		w.broken = errors.New("secret words")
		_, err := w.run(t, starter(), name, input)
		check.Contains(t, fmt.Sprint(err), "cannot be read at the moment")
		check.Lacks(t, fmt.Sprint(err), "secret")
	}
}

func TestChangesFollowFromCalls(t *testing.T) {
	registry := tools.NewRegistry(subagents.Tools(subagents.Options{})...)
	root := starter(chattest.UID("8c1f8a5e-0000-4000-8000-000000000000"))
	batch := &tools.Batch{Chat: root, Reply: 4, Calls: []v1beta1.ToolCall{
		{ID: "call_1", Name: "spawn_agent", Input: `{"type":"explore","prompt":"Look.","model_config_id":"strong","reasoning_effort":"xhigh"}`},
		{ID: "call_2", Name: "message_agent", Input: `{"chat":"sub","message":"And?","interrupt":true}`},
		{ID: "call_3", Name: "interrupt_agent", Input: `{"chat":"idle"}`},
		{ID: "call_4", Name: "spawn_agent", Input: `{"type":"general","prompt":"Fails."}`},
		{ID: "call_5", Name: "list_agents", Input: `{}`},
	}}
	results := make([]v1beta1.ToolResult, len(batch.Calls))
	for i, call := range batch.Calls {
		results[i] = v1beta1.ToolResult{ID: call.ID, Name: call.Name, Output: "{}", IsError: call.ID == "call_4"}
	}
	changes, _ := registry.AgentChanges(batch, results)
	got, err := json.Marshal(changes)
	check.OK(t, err)
	of := func(call string) string { return `{"key":"` + strings.TrimSuffix(key, "1") + call + `","chat":"` }
	want := `[` + of("1") + agents.Name("root", key) +
		`","spawn":{"type":"explore","prompt":"Look.","title":"Look.","modelConfigRef":{"name":"strong"},"reasoningEffort":"XHigh"}},` +
		of("2") + `sub","message":{"content":"And?","interrupts":true}},` + of("3") + `idle","interrupt":{}}]`
	check.Equal(t, "changes", want, string(got))
}

func TestChangesOfOneMessageAreLimited(t *testing.T) {
	registry := tools.NewRegistry(subagents.Tools(subagents.Options{})...)
	batch := &tools.Batch{Chat: starter()}
	var results []v1beta1.ToolResult
	for i := range v1beta1.MaxAgentChanges + 2 {
		id := string(rune('a' + i))
		batch.Calls = append(batch.Calls, v1beta1.ToolCall{ID: id, Name: "spawn_agent", Input: `{"type":"general","prompt":"x"}`})
		results = append(results, v1beta1.ToolResult{ID: id, Name: "spawn_agent", Output: "{}"})
	}
	changes, results := registry.AgentChanges(batch, results)
	if len(changes) != v1beta1.MaxAgentChanges || results[7].IsError || !results[8].IsError || !results[9].IsError ||
		!strings.Contains(results[9].Output, "in your next reply") {
		t.Errorf("%d changes, %+v", len(changes), results[7:])
	}
}
