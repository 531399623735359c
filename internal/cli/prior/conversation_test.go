// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prior_test

import (
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/prior"
	"parley.dev/parley/test/kit/check"
)

func user(text string) v1beta1.PriorMessage {
	return v1beta1.PriorMessage{Role: v1beta1.RoleUser, Content: text}
}

func assistant(text string, calls ...v1beta1.PriorToolCall) v1beta1.PriorMessage {
	return v1beta1.PriorMessage{Role: v1beta1.RoleAssistant, Content: text, ToolCalls: calls}
}

func tool(results ...v1beta1.ToolResult) v1beta1.PriorMessage {
	return v1beta1.PriorMessage{Role: v1beta1.RoleTool, ToolResults: results}
}

var (
	called   = v1beta1.PriorToolCall{ID: "call_1", Name: "look", Input: `{"at":"node-7"}`}
	returned = v1beta1.ToolResult{ID: "call_1", Name: "look", Output: "down"}
)

// exported is an export with a chat, whose context begins at the index, and further lines.
func exported(contextStart int, lines ...string) string {
	return fmt.Sprintf(`{"type":"chat","name":"c","title":"Node-7","contextStart":%d,"usage":{"totalTokens":7},`+
		`"cost":[{"currency":"EUR","microUnits":1}]}`, contextStart) + "\n" + strings.Join(lines, "\n") + "\n"
}

func said(index int, fields string) string {
	return fmt.Sprintf(`{"type":"message","index":%d,"name":"m","createdAt":"2026-11-23T12:00:00Z",%s}`, index, fields)
}

func TestAConversationIsReadInEveryForm(t *testing.T) {
	call := `{"type":"ToolCall","toolCall":{"id":"call_1","name":"look","input":"{\"at\":\"node-7\"}"}}`
	result := `{"type":"ToolResult","toolResult":{"id":"call_1","output":"down"}}`
	text := func(words string) string { return fmt.Sprintf(`{"type":"Text","text":%q}`, words) }
	for name, c := range map[string]struct {
		raw  string
		want prior.Conversation
	}{
		"an export with calls, whose results name no tool": {
			raw: exported(0, said(0, `"role":"User","content":"Why?"`),
				said(1, `"role":"Assistant","cost":{"currency":"EUR","microUnits":1},"parts":[`+
					`{"type":"Reasoning","text":"Hm."},`+text("I look.")+`,`+call+`]`), said(2, `"role":"Tool","parts":[`+result+`]`),
				said(3, `"role":"Assistant","parts":[`+text("It is down.")+`]`)),
			want: prior.Conversation{Title: "Node-7", Messages: []v1beta1.PriorMessage{user("Why?"),
				assistant("I look.", called), tool(returned), assistant("It is down.")}},
		},
		"calls that the provider made itself": {
			raw: exported(0, said(0, `"role":"User","content":"Why?"`),
				said(1, `"role":"Assistant","parts":[`+call+`,`+result+`,`+text("It is down.")+`]`)),
			want: prior.Conversation{Title: "Node-7", Messages: []v1beta1.PriorMessage{user("Why?"), assistant("", called),
				tool(returned), assistant("It is down.")}},
		},
		"notes, and what the model saw no more when the context was summarised": {
			raw: exported(2, said(0, `"role":"User","content":"Why?"`), said(1, `"role":"Assistant","parts":[`+text("So.")+`]`),
				strings.Replace(said(2, `"role":"User","content":"on the phone"`), "message", "note", 1),
				said(2, `"role":"System","parts":[`+text("They spoke of node-7.")+`]`), said(3, `"role":"User","content":"And?"`)),
			want: prior.Conversation{Title: "Node-7", Left: prior.Left{Notes: 1, BeforeContext: 2},
				Messages: []v1beta1.PriorMessage{user("They spoke of node-7."), user("And?")}},
		},
		"files here and elsewhere, and a reply without a word": {
			raw: exported(0, said(0, `"role":"User","parts":[`+text("Look: ")+
				`,{"type":"File","file":{"name":"a.png","mediaType":"image/png","data":"aGk="}}`+
				`,{"type":"File","file":{"name":"b.png","mediaType":"image/png","url":"https://x.test/b.png"}}`+
				`,{"type":"File","file":{"name":"c.pdf","mediaType":"application/pdf","configMapKeyRef":{"name":"c","key":"c"}}}]`),
				said(1, `"role":"Assistant","parts":[{"type":"Reasoning","text":"Hm."}]`)),
			want: prior.Conversation{Title: "Node-7", Left: prior.Left{Files: 2}, Messages: []v1beta1.PriorMessage{{
				Role: v1beta1.RoleUser, Content: "Look: (b.png at https://x.test/b.png)(c.pdf)",
				Files: []v1beta1.PriorFile{{Name: "a.png", MediaType: "image/png", Data: "aGk="}}}}},
		},
		"an export of a chat that was imported": {
			raw: exported(0, said(0, `"role":"User","history":[{"role":"User","content":"Why?"},{"role":"Assistant","content":"So."}]`),
				said(1, `"role":"User","content":"And?"`)),
			want: prior.Conversation{Title: "Node-7",
				Messages: []v1beta1.PriorMessage{user("Why?"), assistant("So."), user("And?")}},
		},
		"messages of OpenAI": {
			raw: `[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Why?"}]},
				{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":
				{"name":"look","arguments":"{\"at\":\"node-7\"}"}}]},{"role":"tool","tool_call_id":"call_1","content":"down"},
				{"role":"assistant","content":"It is down."}]`,
			want: prior.Conversation{Left: prior.Left{System: 1}, Messages: []v1beta1.PriorMessage{user("Why?"),
				assistant("", called), tool(returned), assistant("It is down.")}},
		},
		"a request of OpenAI": {
			raw:  "\ufeff\n" + `{"model":"gpt","tool_choice":"required","messages":[{"role":"user","content":"Why?"}]}`,
			want: prior.Conversation{Messages: []v1beta1.PriorMessage{user("Why?")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := prior.Read([]byte(c.raw))
			check.OK(t, err)
			check.Equal(t, "conversation", &c.want, got)
		})
	}
}

func TestWhatIsNoConversationIsSaid(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"nothing":               {"", "neither an export"},
		"an export for people":  {"# Node-7\n\nChat c in namespace ns", "kubectl chat export -o jsonl"},
		"other JSON":            {`{"kind":"Chat"}`, "neither a list of messages nor an object with messages"},
		"several conversations": {`{"messages":[]}` + "\n" + `{"messages":[]}`, "several conversations"},
		"a list of none":        {`[]`, "no message in it"},
		"an empty chat":         {exported(0), "no message in it"},
		"two chats":             {exported(0, exported(0)), "line 2 begins a second chat"},
		"a line of its own":     {exported(0, `{"type":"secret"}`), `line 2 is of type "secret"`},
		"a line that is cut":    {exported(0, said(0, `"role":"User","content":"Why?"`), `{"type":`), "line 3 is no message"},
		"a role of its own":     {exported(0, said(0, `"role":"Admin","content":"Why?"`)), `a message of role "Admin"`},
		"a role that OpenAI has not": {`[{"role":"root","content":"Why?"}]`,
			"the role is none of system, developer, user, assistant and tool"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := prior.Read([]byte(c.raw)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// exchanges are so many questions with their answers.
func exchanges(n int, answer string) *prior.Conversation {
	c := &prior.Conversation{}
	for range n {
		c.Messages = append(c.Messages, user("Why?"), assistant(answer))
	}
	return c
}

func TestTooLongConversationTellsWhatFits(t *testing.T) {
	for name, c := range map[string]struct {
		conversation *prior.Conversation
		oldest       int
		want         string
	}{
		"as many messages as fit":    {exchanges(512, "So."), 0, ""},
		"one more":                   {exchanges(513, "So."), 2, "--truncate leaves the oldest 2 out"},
		"a cut within an exchange":   {&prior.Conversation{Messages: exchanges(513, "So.").Messages[1:]}, 1, "oldest 1"},
		"three answers, one too big": {exchanges(3, strings.Repeat("a", 400<<10)), 2, "oldest 2"},
		"signs of several bytes":     {exchanges(2, strings.Repeat("語", 200<<10)), 2, "oldest 2"},
		"one answer that is too big": {exchanges(1, strings.Repeat("a", 1<<20)), 0, "is more than that"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.conversation.Fit(false); (err == nil) != (c.want == "") ||
				err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if err := c.conversation.Fit(true); (err == nil) != (c.want == "" || c.oldest > 0) ||
				c.conversation.Left.Oldest != c.oldest {
				t.Errorf("dropped %d: %v", c.conversation.Left.Oldest, err)
			}
			if c.oldest > 0 && (c.conversation.Fit(false) != nil || c.conversation.Messages[0].Role != v1beta1.RoleUser) {
				t.Error("the rest does not fit")
			}
		})
	}
}
