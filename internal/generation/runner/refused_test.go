// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/test/modelserver"
)

func TestAnAttemptWhoseNameSomebodyElseHasIsOverForTheChatToSay(t *testing.T) {
	t.Parallel()
	now := metav1.NowMicro()
	for name, holder := range map[string]func(c *conversation) v1alpha1.ChatMessageSpec{
		"another chat": func(*conversation) v1alpha1.ChatMessageSpec {
			return v1alpha1.ChatMessageSpec{ChatRef: v1alpha1.ChatReference{Name: "no-such-chat"}, Role: v1alpha1.RoleAssistant,
				Generation: &v1alpha1.MessageGeneration{
					ChatUID: "unused", HistoryVersion: 1, Attempt: 1, Action: v1alpha1.ActionGenerateAssistant, Pod: "stranger",
					Outcome: v1alpha1.OutcomeLost, StartedAt: now, FinishedAt: now,
				}}
		},
		"another pod": func(c *conversation) v1alpha1.ChatMessageSpec {
			return v1alpha1.ChatMessageSpec{ChatRef: v1alpha1.ChatReference{Name: c.chat.Name}, Role: v1alpha1.RoleAssistant,
				Generation: &v1alpha1.MessageGeneration{
					ChatUID: string(c.chat.UID), HistoryVersion: 1, Attempt: 1, Action: v1alpha1.ActionGenerateAssistant,
					Pod:     "stranger",
					Outcome: v1alpha1.OutcomeLost, StartedAt: now, FinishedAt: now,
				}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPod(t, reply(modelserver.Say("Paris")), nil)
			c := p.newChat("taken", nil)
			create(t, &v1alpha1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "taken-1-1"}, Spec: holder(c)})
			c.ask("taken-u", "hello")
			p.eventually("the create has been refused twice",
				func() bool { return strings.Count(p.log.String(), "trying again") >= 2 })
			if said := strings.Count(p.log.String(), "ResultNameTaken"); name == "another pod" && said != 1 {
				t.Errorf("that the name is taken was said %d times: %s", said, p.log)
			}
			c.write(func(s *v1alpha1.ChatStatus) { s.Generation.Attempt = 2 })
			if m := c.result(); m.Name != "taken-1-2" || m.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted {
				t.Errorf("got %s: %+v", m.Name, m.Spec.Generation)
			}
		})
	}
}

func TestAResultThatIsRefusedTwiceSaysOnlyWhatParleyKnows(t *testing.T) {
	t.Parallel()
	script := reply(modelserver.Say("Paris"))
	p := startPod(t, script, func(_ *pod, o *runner.Options) { o.Forbidden = time.Nanosecond })
	p.wire.onCreate(answers(422, metav1.StatusReasonInvalid), answers(422, metav1.StatusReasonInvalid))
	c := p.newChat("refused", nil)
	c.ask("refused-u", "hello")
	c.failure(v1alpha1.ErrorInternal)
	if g := c.result().Spec.Generation; g.Usage != nil || g.Model != nil || g.FinishReason != "" || g.Title != "" {
		t.Errorf("the last offer holds %+v", g)
	}
}

func TestAPartialReplyThatIsRefusedEndsTheInterruptionWithoutIt(t *testing.T) {
	t.Parallel()
	c := hanging(t, nil)
	c.wire.onCreate(answers(422, metav1.StatusReasonInvalid))
	c.write(interrupt)
	if m := c.result(); m.Spec.Generation.Outcome != v1alpha1.OutcomeInterrupted || len(m.Spec.Parts) != 0 {
		t.Errorf("got %+v with %d parts", m.Spec.Generation, len(m.Spec.Parts))
	}
}

// chatChunk is an event of OpenAI's chat protocol.
func chatChunk(choice, usage string) string {
	return fmt.Sprintf(
		`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s],"usage":%s}`+"\n\n", choice,
		usage)
}

func TestWhateverAProviderSaysTheAttemptEnds(t *testing.T) {
	t.Parallel()
	const text = `{"index":0,"delta":{"role":"assistant","content":"Paris"},"finish_reason":null}`
	stop := func(reason string) string {
		return `{"index":0,"delta":{},"finish_reason":"` + reason + `"}`
	}
	call := func(id, name string) string {
		return fmt.Sprintf(
			`{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":%q,"arguments":"{}"}}]},"finish_reason":null}`, id, name)
	}
	long := strings.Repeat("x", 5000)
	for name, events := range map[string][]string{
		"counts below zero": {chatChunk(text, "null"), chatChunk(stop("stop"), "null"),
			chatChunk("", `{"prompt_tokens":-5,"completion_tokens":-7,"total_tokens":-12}`)},
		"counts beyond all": {chatChunk(text, "null"), chatChunk(stop("stop"), "null"),
			chatChunk("",
				`{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807,"total_tokens":9223372036854775807,"completion_tokens_details":{"reasoning_tokens":9223372036854775807}}`)},
		"counts that are no integers": {chatChunk(text, "null"), chatChunk(stop("stop"), "null"),
			chatChunk("", `{"prompt_tokens":1e30,"completion_tokens":0.5,"total_tokens":"many"}`)},
		"a finish reason of its own": {chatChunk(text, "null"), chatChunk(stop("\\u0000\\u001b[2J"+long), "null")},
		"a call with a long name":    {chatChunk(call("call_1", long), "null"), chatChunk(stop("tool_calls"), "null")},
		"a call with a name of escapes": {chatChunk(call("call_1", "\x1b[2J\x07\u202e"), "null"),
			chatChunk(stop("tool_calls"), "null")},
		"a call with a long id": {chatChunk(call("\x00\n"+long, "current_time"), "null"),
			chatChunk(stop("tool_calls"), "null")},
		"bytes that are no characters": {chatChunk(strings.Replace(text, "Paris", "\xff\xfe\xc0", 1), "null"),
			chatChunk(stop("stop"), "null")},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, strings.Join(events, "")+"data: [DONE]\n\n")
			}))
			t.Cleanup(server.Close)
			p := startPod(t, modelserver.Script{}, nil)
			create(t, modelConfig(p.ns, "odd", server.URL+"/v1"))
			c := p.newChat("odd", nil)
			c.config = "odd"
			c.ask("odd-u", "hello")
			m := c.result()
			if strings.Contains(p.log.String(), "refused the result") {
				t.Errorf("the API server refused the first result: %s", p.log)
			}
			if u := m.Spec.Generation.Usage; u != nil && (u.TotalTokens < 0 || u.InputTokens < 0) {
				t.Errorf("the usage is %+v", u)
			}
		})
	}
}
