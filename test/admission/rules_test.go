// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/test/kit/chattest"
)

// longest is more than half of what a message may say.
var longest = strings.Repeat("a", 1<<19+1)

// TestInvalidUserMessageIsRejectedWithExplanation breaks one rule of the schema at a time.
func TestInvalidUserMessageIsRejectedWithExplanation(t *testing.T) {
	t.Parallel()
	tooLong := say("any")
	tooLong.Spec.Content = strings.Repeat("é", len(longest))
	results := func(change func(*v1beta1.ChatMessageSpec)) client.Object {
		m := toolOutput("any")
		change(&m.Spec)
		return m
	}
	part := func(p v1beta1.MessagePart) client.Object {
		m := inParts("any", "a")
		m.Spec.Parts = append(m.Spec.Parts, p)
		return m
	}
	only := func(field, of string) string {
		return field + " must be set for the type " + of + ", and for no other"
	}
	try(t, []write{
		{chatter, "says too much in UTF-8", creates(tooLong), "content may have at most 1048576 bytes (1 MiB)"},
		{chatter, "says too much in parts", creates(inParts("any", longest, longest)),
			"the texts of all parts together, and the files in base64"},
		{chatter, "brings too much", creates(results(func(s *v1beta1.ChatMessageSpec) {
			s.Parts[0].ToolResult.Output = longest
			s.Parts = append(s.Parts, s.Parts[0])
		})), "the outputs of all results together may have at most 1048576 characters"},
		{chatter, "brings a text", creates(results(func(s *v1beta1.ChatMessageSpec) {
			s.Parts[0] = v1beta1.MessagePart{Type: v1beta1.PartText, Text: new("a")}
		})), "a Tool message has parts, all of type ToolResult"},
		{chatter, "cuts in with results",
			creates(results(func(s *v1beta1.ChatMessageSpec) { s.WhenBusy = v1beta1.WhenBusyInterrupt })),
			"a Tool message has no whenBusy"},
		{chatter, "chooses a model for results", creates(results(func(s *v1beta1.ChatMessageSpec) {
			s.ModelConfigRef = &v1beta1.ModelConfigReference{Name: "a"}
		})), "modelConfigRef, reasoningEffort, output, toolChoice and stop belong to User messages"},
		{chatter, "gives a result", creates(part(toolOutput("any").Spec.Parts[0])),
			"parts of a User message must be of type Text or File"},
		{chatter, "gives no text", creates(part(v1beta1.MessagePart{Type: v1beta1.PartText})),
			"text must be set for the types Text and Reasoning, and for no other"},
		{chatter, "gives no call", creates(part(v1beta1.MessagePart{Type: v1beta1.PartToolCall})),
			only("toolCall", "ToolCall")},
		{chatter, "gives no result", creates(part(v1beta1.MessagePart{Type: v1beta1.PartToolResult})),
			only("toolResult", "ToolResult")},
		{chatter, "gives no source", creates(part(v1beta1.MessagePart{Type: v1beta1.PartSource})),
			only("source", "Source")},
		{chatter, "gives no file", creates(part(v1beta1.MessagePart{Type: v1beta1.PartFile})), only("file", "File")},
	})
}

// TestWhatIsNoResultIsRefusedInWords breaks one rule of the schema or of the policy at a time.
func TestWhatIsNoResultIsRefusedInWords(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	broken := func(does string, change func(*v1beta1.ChatMessageSpec), words string) write {
		return write{podA, does, creates(result(s.chat, func(m *v1beta1.ChatMessage) { change(&m.Spec) })), words}
	}
	type spec = v1beta1.ChatMessageSpec
	try(t, []write{
		broken("has content", func(s *spec) { s.Content = "a" }, "a generated message has parts, not content"),
		broken("has a history", func(s *spec) { s.History = []v1beta1.PriorMessage{{Role: "User", Content: "a"}} },
			"history belongs to User messages"),
		broken("cuts in", func(s *spec) { s.WhenBusy = v1beta1.WhenBusyInterrupt },
			"a generated message has no whenBusy"),
		broken("chooses a model", func(s *spec) { s.ModelConfigRef = &v1beta1.ModelConfigReference{Name: "a"} },
			"modelConfigRef, reasoningEffort, output, toolChoice and stop belong to User messages"),
		broken("chooses an effort", func(s *spec) { s.ReasoningEffort = "Low" },
			"modelConfigRef, reasoningEffort, output, toolChoice and stop belong to User messages"),
		broken("asks for an output", func(s *spec) {
			s.Output = &v1beta1.OutputFormat{Schema: runtime.RawExtension{Raw: []byte(`{"type":"object"}`)}}
		}, "modelConfigRef, reasoningEffort, output, toolChoice and stop belong to User messages"),
		broken("has another role", func(s *spec) { s.Role = v1beta1.RoleTool },
			"role of a generated message must be that of its action"),
		broken("gives a reply as a summary", func(s *spec) {
			s.Generation.Action = v1beta1.ActionCompact
			s.Generation.Compaction = &v1beta1.CompactionAccount{Source: v1beta1.CompactionManual}
		}, "role of a generated message must be that of its action"),
		broken("is for the model alone", func(s *spec) { s.Visibility = v1beta1.VisibleToModel },
			"of generated messages a summary alone has a visibility"),
		broken("has a title of nowhere", func(s *spec) { s.Generation.Title = "a" }, "title and titleSource belong together"),
		broken("has a source of no title", func(s *spec) { s.Generation.TitleSource = v1beta1.TitleFromModel },
			"title and titleSource belong together"),
		broken("fails without an error", func(s *spec) { s.Generation.Outcome = v1beta1.OutcomeFailed },
			"error must be set for the outcome Failed"),
		broken("compacts without an account", func(s *spec) {
			s.Role, s.Generation.Action = v1beta1.RoleSystem, v1beta1.ActionCompact
		}, "compaction must be set for a completed compaction"),
		broken("summarizes a turn that it answers", func(s *spec) { s.Generation.TurnSummary = "a" },
			"turnSummary belongs to the action SummarizeTurn"),
		{podA, "summarizes a turn with nothing", creates(result(s.chat, func(m *v1beta1.ChatMessage) {
			m.Name = fence.SummaryName(s.chat.Name, m.Spec.Generation.HistoryVersion)
			m.Spec.Generation.Action, m.Spec.Generation.Usage = v1beta1.ActionSummarizeTurn, nil
		})), "turnSummary belongs to the action SummarizeTurn"},
		broken("is stopped by a tool", func(s *spec) { s.Generation.StoppedBy = "a" }, "stoppedBy belongs to the results"),
		broken("stops a workspace", func(s *spec) { s.Generation.Workspace = &v1beta1.WorkspaceChange{Stop: true} },
			"workspace belongs to the results of ExecuteTools"),
	})
}

// TestWhatCannotChangeIsRefusedInWords changes one thing at a time, and then what has nothing to do with it.
func TestWhatCannotChangeIsRefusedInWords(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	brought, asked := toolOutput(s.chat.Name), newChat(unique("asked"))
	asked.Spec.Prompt = "a"
	below, loop := subChat(unique("below"), asked.Name), unique("loop")
	pooled := newChat(unique("pooled"))
	pooled.Spec.Workspace = &v1beta1.WorkspaceSource{WarmPoolRef: &v1beta1.WarmPoolReference{Name: "a"}}
	for _, o := range []client.Object{brought, asked, below, pooled} {
		mustCreate(t, chatter, o)
	}
	try(t, []write{
		{chatter, "moves a message", patches(s.asked, `{"spec":{"chatRef":{"name":"other"}}}`),
			"chatRef cannot change: create a new message for the other chat"},
		{chatter, "makes a message one of results", patches(s.asked, `{"spec":{"role":"Tool"}}`), "role cannot change"},
		{chatter, "hides a message", patches(s.asked, `{"spec":{"visibility":"Model"}}`), "visibility cannot change"},
		{chatter, "says of a message what it is anyway", patches(s.asked, `{"spec":{"visibility":"All"}}`), ""},
		{chatter, "changes results",
			patches(brought, `{"spec":{"parts":[{"type":"ToolResult","toolResult":{"id":"call_1","output":"b"}}]}}`),
			"a Tool message cannot change: create another one"},
		{chatter, "changes a prompt", patches(asked, `{"spec":{"prompt":"b"}}`), "prompt starts the chat and cannot change"},
		{chatter, "takes a prompt back", patches(asked, `{"spec":{"prompt":null}}`),
			"prompt starts the chat and cannot change"},
		{chatter, "prompts late", patches(s.chat, `{"spec":{"prompt":"b"}}`), "prompt can only be given when the chat is"},
		{chatter, "gives a sub-chat to another chat", patches(below, `{"spec":{"parentRef":{"name":"other"}}}`),
			"parentRef cannot change"},
		{chatter, "frees a sub-chat", patches(below, `{"spec":{"parentRef":null}}`), "parentRef cannot change"},
		{chatter, "makes a chat a sub-chat", patches(asked, `{"spec":{"parentRef":{"name":"other"}}}`),
			"parentRef cannot change"},
		{chatter, "takes another pool", patches(pooled, `{"spec":{"workspace":{"warmPoolRef":{"name":"b"}}}}`),
			"a workspace cannot move between a template, a pool and a pod"},
		{chatter, "holds a chat", patches(asked, `{"spec":{"suspend":true}}`), ""},
		{chatter, "holds a sub-chat", patches(below, `{"spec":{"suspend":true}}`), ""},
		{chatter, "calls a chat by a long name", creates(newChat(strings.Repeat("a", 201))),
			"the name of a Chat may have at most 200 characters"},
		{chatter, "puts a chat below itself", creates(subChat(loop, loop)), "parentRef names the chat itself"},
	})
}

// TestARefusalDoesNotRepeatWhatWasSaid: an error is shown and logged by clients.
func TestARefusalDoesNotRepeatWhatWasSaid(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("the moon is made of cheese é ", 40000)
	tooLong, asked := say("any"), newChat(unique("asked"))
	tooLong.Spec.Content = secret
	asked.Spec.Prompt = "the moon is made of cheese"
	mustCreate(t, chatter, asked)
	c := as(t, chatter)
	for does, err := range map[string]error{
		"saying too much":   c.Create(t.Context(), tooLong),
		"changing a prompt": patches(asked, `{"spec":{"prompt":"cheese after all"}}`)(t.Context(), c),
	} {
		if err == nil || strings.Contains(err.Error(), "cheese") {
			t.Errorf("%s: %.200v", does, err)
		}
	}
}

func TestUnknownModeAndSubChatPlanAreRejected(t *testing.T) {
	t.Parallel()
	sub, alone := subChat(unique("chat"), "root"), newChat(unique("chat"))
	mustCreate(t, chatter, sub)
	mustCreate(t, chatter, alone)
	const plan, explore, other = `{"spec":{"mode":"Plan"}}`, `{"spec":{"mode":"Explore"}}`, `{"spec":{"mode":"plan"}}`
	try(t, []write{
		{chatter, "has a sub-chat plan", patches(sub, plan), "a sub-chat proposes no plans: set mode to Explore"},
		{chatter, "has a sub-chat explore", patches(sub, explore), ""},
		{chatter, "makes a mode up", patches(alone, other), `supported values: "Plan", "Explore"`},
		{chatter, "has a chat plan", patches(alone, plan), ""},
		{chatter, "has it explore", patches(alone, explore), ""},
		{chatter, "takes the mode away", patches(alone, `{"spec":{"mode":null}}`), ""},
	})
}

// mistyped are objects with one wrong value each, with what the refusal says of it.
func mistyped() map[string]write {
	chat := func(change func(*v1beta1.ChatSpec)) *v1beta1.Chat {
		c := newChat(unique("mistyped"))
		change(&c.Spec)
		return c
	}
	config := func(change func(*v1beta1.ChatModelConfigSpec)) *v1beta1.ChatModelConfig {
		c := chattest.In(ns, chattest.Config(unique("mistyped")))
		change(&c.Spec)
		return c
	}
	return map[string]write{
		"the URL of an MCP server": {administrator, "", creates(chat(func(s *v1beta1.ChatSpec) {
			s.MCPServers = []v1beta1.MCPServer{{Name: "github", URL: "mcp.example.com"}}
		})), "url begins with https:// or http:// and a host, and has no user, no spaces and no #, such as https://"},
		"the name of an MCP server": {administrator, "", creates(chat(func(s *v1beta1.ChatSpec) {
			s.MCPServers = []v1beta1.MCPServer{{Name: "GitHub", URL: "https://mcp.example.com"}}
		})), "the name of a server has lower-case letters"},
		"a client's tool": {chatter, "", creates(chat(func(s *v1beta1.ChatSpec) {
			s.Tools = &v1beta1.ChatTools{Client: []v1beta1.ClientTool{{Name: "open ticket"}}}
		})), "the name of a tool has letters, digits, _ and - only, such as open_ticket"},
		"a client's tool at length": {chatter, "", creates(chat(func(s *v1beta1.ChatSpec) {
			s.Tools = &v1beta1.ChatTools{Client: []v1beta1.ClientTool{{Name: "a",
				Description: strings.Repeat("é", v1beta1.MaxToolDescription+1)}}}
		})), fmt.Sprintf("description: Too long: may not be more than %d", v1beta1.MaxToolDescription)},
		"a pattern of tools": {chatter, "", creates(chat(func(s *v1beta1.ChatSpec) {
			s.Tools = &v1beta1.ChatTools{ToolPolicy: v1beta1.ToolPolicy{Deny: []v1beta1.ToolPattern{"*_file"}}}
		})), "with at most one * at the end, such as read_file, github__* or *"},
		"a ChatClass": {chatter, "", creates(chat(func(s *v1beta1.ChatSpec) { s.ChatClassName = "My Class" })),
			"the name of a ChatClass has lower-case letters"},
		"a currency": {administrator, "", creates(config(func(s *v1beta1.ChatModelConfigSpec) {
			s.Pricing = &v1beta1.Pricing{Currency: "usd", InputPerMillion: "1", OutputPerMillion: "1"}
		})), "a currency is three upper-case letters (ISO 4217), such as USD"},
		"a header": {administrator, "", creates(config(func(s *v1beta1.ChatModelConfigSpec) {
			s.Headers = []v1beta1.Header{{Name: "X Team", Value: "a"}}
		})), "the name of a header has letters, digits and"},
	}
}

func TestARefusalSaysInWordsWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for name, w := range mistyped() {
		t.Run(name, func(t *testing.T) {
			w.does = "mistypes " + name
			try(t, []write{w})
		})
	}
}
