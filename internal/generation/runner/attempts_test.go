// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/modelserver"
)

func reply(steps ...modelserver.Step) modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: steps}}}}
}

// failsOnce is a model that fails once and then says the text.
func failsOnce(status int, text string) modelserver.Script {
	script := reply(modelserver.Say(text))
	script.Rules = append([]modelserver.Rule{{Times: 1, Reply: modelserver.Reply{
		Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: status}}}}, script.Rules...)
	return script
}

func TestStepIsOneMessageWithItsAccount(t *testing.T) {
	t.Parallel()
	script := reply(modelserver.Think("It is ", "a capital."), modelserver.Say("\n", "Paris", ".\nOf course."))
	script.Rules[0].Reply.Usage = &modelserver.Usage{Input: 100, Output: 50, Cached: 40, Reasoning: 20}
	p := startPod(t, script, nil)
	c := p.newChat("capital", func(s *v1beta1.ChatSpec) { s.SystemPrompt = "Be brief." })
	c.ask("capital-prompt", "What is the capital of France?")
	m := c.result()
	check.Equal(t, "the name", "capital-1-1", m.Name)
	check.Equal(t, "the owner", []metav1.OwnerReference{{APIVersion: "parley.dev/v1beta1", Kind: "Chat", Name: "capital",
		UID: c.chat.UID, Controller: new(true)}}, m.OwnerReferences)
	check.Equal(t, "the message", v1beta1.ChatMessageSpec{
		ChatRef: v1beta1.ChatReference{Name: "capital"}, Role: v1beta1.RoleAssistant, Parent: "capital-prompt",
		Index: new(int64(1)), Follows: c.chat.Status.Internal.Tail, Parts: []v1beta1.MessagePart{
			{Type: v1beta1.PartReasoning, Text: new("It is a capital.")},
			{Type: v1beta1.PartText, Text: new("\nParis.\nOf course.")}},
		Generation: &v1beta1.MessageGeneration{
			ChatUID: string(c.chat.UID), HistoryVersion: 1, Attempt: 1, Action: v1beta1.ActionGenerateAssistant, Pod: p.name,
			Outcome: v1beta1.OutcomeCompleted, FinishReason: "stop", ReplyOutcome: v1beta1.ReplyComplete, Preview: "Paris.",
			Title: "What is the capital of France?", TitleSource: v1beta1.TitleFromFirstWords,
			Model: &v1beta1.ModelIdentity{Config: "default", Provider: "openai-compatible", Name: "scripted"},
			Usage: &v1beta1.TokenUsage{InputTokens: 60, OutputTokens: 50, ReasoningTokens: 20, CacheReadTokens: 40,
				TotalTokens: 150},
			Context: &v1beta1.ContextStatus{Tokens: 100, Replies: 1},
		},
	}, m.Spec, cmpopts.IgnoreFields(v1beta1.MessageGeneration{}, "StartedAt", "FinishedAt", "ResponseID", "RequestID",
		"ModelMilliseconds"), cmpopts.IgnoreFields(v1beta1.MessagePart{}, "StartedAt", "FinishedAt"))
	g := m.Spec.Generation
	check.Equal(t, "it took from", []any{false, false}, []any{g.StartedAt.IsZero(), g.FinishedAt.Before(&g.StartedAt)})
	text, types := p.relay.heard(c.fence())
	check.Equal(t, "what the relay heard", "It is a capital.\nParis.\nOf course.", text)
	check.Equal(t, "what it heard first", parts.Reasoning, types[0])
	c.eventually("the episode is closed", func() bool { return p.relay.isClosed(c.fence()) })
	check.Contains(t, p.lastBody(), "Be brief.", "capital of France", `"current_time"`, `77`)
	check.Equal(t, "the log", "", p.log.String())
}

func TestChatsAreWatchedOnceTheRelayTakesParts(t *testing.T) {
	t.Parallel()
	watched := -1
	startPod(t, paris, func(p *pod, o *runner.Options) {
		o.AwaitRelay = func(context.Context) {
			p.wire.mu.Lock()
			defer p.wire.mu.Unlock()
			watched = p.wire.count["get chats"]
		}
	})
	check.Equal(t, "requests for chats while the relay was waited for; -1: it was not", 0, watched)
}

func TestVerboseLogsHoldNoContent(t *testing.T) {
	t.Parallel()
	p := startPod(t, paris, func(p *pod, o *runner.Options) {
		o.Log = slog.New(slog.NewJSONHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	c := p.newChat("verbose", nil)
	c.ask("verbose-prompt", "What is the capital of France?")
	p.eventually("the end is logged", func() bool { return strings.Contains(p.log.String(), "Attempt ended") })
	check.Contains(t, p.log.String(), `"msg":"Attempt started","attempt":{"chat":"verbose","historyVersion":1,"number":1},`+
		`"action":"GenerateAssistant","modelConfig":"default"`, `"outcome":"Completed"`)
	check.Lacks(t, p.log.String(), "capital of", "Paris")
}

// usesTool is a model that calls current_time and then says what it got.
var usesTool = modelserver.Script{Rules: []modelserver.Rule{
	{Match: modelserver.Match{ToolOffered: "current_time", ToolResults: new(0)},
		Reply: modelserver.Reply{Steps: []modelserver.Step{{ToolCalls: []modelserver.ToolCall{
			{Name: "current_time", Arguments: []byte(`{"timezone":"Asia/Tokyo"}`)}, {Name: "launch", Arguments: []byte(`{}`)},
		}}}}},
	{Match: modelserver.Match{ToolOffered: "set_title"}, Reply: modelserver.Reply{
		Steps: []modelserver.Step{modelserver.Call("set_title", `{"title":"Stuck pods"}`)}}},
	{Reply: modelserver.Reply{
		Steps: []modelserver.Step{{Text: &modelserver.Text{Value: "I read: {{.ToolResultsText}}"}}}}},
}}

func TestToolsRunAndTheHistoryIsKept(t *testing.T) {
	t.Parallel()
	p := startPod(t, usesTool, nil)
	c := p.newChat("clock", nil)
	reads := func(gets, lists int) {
		t.Helper()
		check.Equal(t, "messages read and listed", []int{gets, lists},
			[]int{p.wire.requests("get chatmessages"), p.wire.requests("list chatmessages")})
	}
	c.ask("clock-prompt", "What time is it?")
	calls := c.result()
	check.Equal(t, "calls", 2, int(calls.Spec.Generation.PendingCalls))
	reads(1, 0)
	c.commit(calls, v1beta1.ActionExecuteTools)
	results := c.result()
	check.Equal(t, "the role", v1beta1.RoleTool, results.Spec.Role)
	for i, want := range []string{"1970-01-01T09:00:00+09:00", "current_time"} {
		got := results.Spec.Parts[i].ToolResult
		check.Equal(t, "result", []any{calls.Spec.Parts[i].ToolCall.ID, i == 1}, []any{got.ID, got.IsError})
		check.Contains(t, got.Output, want)
	}
	_, types := p.relay.heard(c.fence())
	slices.Sort(types) // The two calls run at the same time.
	check.Equal(t, "what the relay heard",
		[]parts.Type{parts.ToolResult, parts.ToolResult, parts.ToolStart, parts.ToolStart}, types)
	c.commit(results, v1beta1.ActionGenerateAssistant)
	answer := c.result()
	check.Contains(t, answer.Spec.Text(), "1970-01-01T09:00:00+09:00")
	reads(0, 0)
	c.commit(answer, "")
	c.ask("clock-more", "And now?")
	c.result()
	reads(1, 0)
}

func TestColdPodListsALongHistoryOnce(t *testing.T) {
	t.Parallel()
	p := startPod(t, failsOnce(503, "Fine."), nil)
	c := p.newChat("long", nil)
	var questions []string
	for i := range 6 {
		name := fmt.Sprint("long-u", i)
		questions = append(questions, fmt.Sprint("question ", i))
		c.ask(name, questions[i])
		if i == 0 { // A message that was read before its status was written keeps its place.
			c.ended("Failed Overloaded")
			c.write(func(s *v1beta1.ChatStatus) { s.Generation.Attempt = 2 })
		}
		m := c.ended("Completed: Fine.")
		c.commit(m, "")
	}
	p.stop()
	p.launch(nil)
	c.ask("long-last", "the last question")
	c.result()
	if gets, lists := p.wire.requests("get chatmessages"), p.wire.requests("list chatmessages"); gets > 4 || lists != 1 {
		t.Errorf("read %d messages and %d lists, want at most 4 and 1", gets, lists)
	}
	check.InOrder(t, p.lastBody(), append(questions, "the last question")...)
	t.Log("An edited message is read again.")
	m := c.message("long-last")
	m.Spec.Content = "the new words"
	check.OK(t, cluster.Client.Update(t.Context(), m))
	c.write(func(s *v1beta1.ChatStatus) {
		s.History.Version++
		s.Turn.HistoryVersion, s.Internal.Turn.ContentHash = s.History.Version, hashOf("the new words")
		s.History.ContextStart = s.Turn.Index
	})
	c.result()
	check.Contains(t, p.lastBody(), "the new words")
	check.Lacks(t, p.lastBody(), "the last question", "question 5")
}

func TestBrokenHistorySaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	p := startPod(t, paris, nil)
	for name, want := range map[string]string{
		"gap":    "Message gap-gone of chat gap is missing: it was deleted",
		"length": "The history of chat length cannot be used",
	} {
		c := p.newChat(name, nil)
		c.ask(name+"-u", "hello", func(s *v1beta1.ChatStatus) {
			if s.History.Length = 2; name == "gap" {
				s.Internal.Tail[0].Parent, s.Internal.Tail[0].Position = "gap-gone", 1
			}
		})
		check.Contains(t, c.ended("Failed HistoryInconsistent").Spec.Generation.Error.Text(), want)
	}
}

func TestSummariesOfTurnAndContextAreMessages(t *testing.T) {
	t.Parallel()
	script := paris
	script.Rules = append([]modelserver.Rule{{
		Match: modelserver.Match{ToolOffered: "set_summary"}, Reply: modelserver.Reply{
			Steps: []modelserver.Step{modelserver.Call("set_summary", `{"summary":"Named a capital."}`)}}}}, script.Rules...)
	p := startPod(t, script, nil)
	c := p.newChat("summed", nil)
	c.config = "captioned"
	c.ask("summed-u", "hello", func(s *v1beta1.ChatStatus) { s.Turn.SummarySource = v1beta1.TurnSummaryFromState })
	reply := c.ended("Completed: Paris")
	var summary *v1beta1.ChatMessage
	p.eventually("there is a summary", func() bool { summary = c.message("summed-2-summary"); return summary != nil })
	check.Equal(t, "the summary of the turn", "Named a capital", summary.Spec.Generation.TurnSummary)
	c.commit(reply, v1beta1.ActionCompact)
	summary = c.ended("Completed: Paris")
	check.Equal(t, "that of the context", []any{v1beta1.RoleSystem, v1beta1.VisibleToModel},
		[]any{summary.Spec.Role, summary.Spec.Visibility})
	c.commit(summary, "")
	c.write(func(s *v1beta1.ChatStatus) { // The message of the turn is no longer in the context.
		s.History.ContextStart = *summary.Spec.Index
		s.Generation = c.assignment(v1beta1.ActionGenerateAssistant, 1)
	})
	c.ended("Completed: Paris")
}

func TestConfigurationTheWatchLacksIsFound(t *testing.T) {
	t.Parallel()
	p := startPod(t, paris, nil)
	for range 20 { // The two watches race.
		c := p.newChat("race-"+rand.String(6), nil)
		c.config = c.chat.Name + "-config"
		create(t, modelConfig(p.ns, c.config, p.url))
		c.ask(c.chat.Name+"-u", "hello")
		c.ended("Completed: Paris")
	}
}

// chatChunk is an event of OpenAI's chat protocol.
func chatChunk(choice, usage string) string {
	return fmt.Sprintf(
		`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s],"usage":%s}`+"\n\n", choice,
		usage)
}

func TestOddRepliesBecomeMessages(t *testing.T) {
	t.Parallel()
	const text = `{"index":0,"delta":{"role":"assistant","content":"Paris"},"finish_reason":null}`
	stop := func(reason string) string {
		return chatChunk(`{"index":0,"delta":{},"finish_reason":"`+reason+`"}`, "null")
	}
	counts := func(usage string) string {
		return chatChunk(text, "null") + stop("stop") + chatChunk("", usage)
	}
	call := func(id, name string) string {
		return chatChunk(fmt.Sprintf(`{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":%q,"type":"function",`+
			`"function":{"name":%q,"arguments":"{}"}}]},"finish_reason":null}`, id, name), "null") + stop("tool_calls")
	}
	const most = "9223372036854775807"
	long := strings.Repeat("x", 5000)
	p := startPod(t, modelserver.Script{}, nil)
	for name, events := range map[string]string{
		"counts-below-zero": counts(`{"prompt_tokens":-5,"completion_tokens":-7,"total_tokens":-12}`),
		"counts-beyond-all": counts(`{"prompt_tokens":` + most + `,"completion_tokens":` + most + `,"total_tokens":` + most +
			`,"completion_tokens_details":{"reasoning_tokens":` + most + `}}`),
		"counts-not-integer": counts(`{"prompt_tokens":1e30,"completion_tokens":0.5,"total_tokens":"many"}`),
		"finish-reason":      chatChunk(text, "null") + stop("\\u0000\\u001b[2J"+long),
		"long-name":          call("call_1", long),
		"escapes-in-name":    call("call_1", "\x1b[2J\x07\u202e"),
		"long-id":            call("\x00\n"+long, "current_time"),
		"no-characters":      chatChunk(strings.Replace(text, "Paris", "\xff\xfe\xc0", 1), "null") + stop("stop"),
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, events+"data: [DONE]\n\n")
			}))
			t.Cleanup(server.Close)
			create(t, modelConfig(p.ns, name, server.URL+"/v1"))
			c := p.newChat(name, nil)
			c.config = name
			c.ask(name+"-u", "hello")
			u := cmp.Or(c.result().Spec.Generation.Usage, &v1beta1.TokenUsage{})
			check.Equal(t, "usage is negative", []any{false, false}, []any{u.TotalTokens < 0, u.InputTokens < 0})
		})
	}
	check.Lacks(t, p.log.String(), "refused the result") // The first result of each is taken.
}

func TestRetriedCallIsOneRecording(t *testing.T) {
	t.Parallel()
	p := startPod(t, failsOnce(529, "Paris"), nil)
	c := p.newChat("again", func(s *v1beta1.ChatSpec) {
		s.SystemPrompt = "My key is " + modeltest.Key
		s.Debug = &v1beta1.DebugSettings{Enabled: true, ExpireAfterSeconds: new(int32(600))}
	})
	var step *v1beta1.ChatDebugStep
	recorded := func(state v1beta1.DebugState) {
		t.Helper()
		step = chattest.In(p.ns, &v1beta1.ChatDebugStep{ObjectMeta: metav1.ObjectMeta{Name: "again-1-generateassistant"}})
		p.eventually("the call is recorded", func() bool { return p.read(step) && step.State == state })
	}
	began := time.Now()
	c.ask("again-u", "hello")
	c.ended("Failed Overloaded")
	recorded(v1beta1.DebugError)
	check.Equal(t, "the error", 529, int(step.Error.StatusCode))
	expires, err := time.Parse(time.RFC3339, step.Annotations[v1beta1.AnnotationExpiresAt])
	check.Equal(t, "it expires", []any{nil, false, false},
		[]any{err, expires.Before(began.Add(599 * time.Second)), expires.After(time.Now().Add(601 * time.Second))})
	check.Equal(t, "the owner", c.chat.UID, step.OwnerReferences[0].UID)
	c.write(func(s *v1beta1.ChatStatus) { s.Generation = nil })
	p.drain()
	<-p.ended
	p.stop()
	p.launch(nil)
	c.write(func(s *v1beta1.ChatStatus) { s.Generation = c.assignment(v1beta1.ActionGenerateAssistant, 2) })
	c.ended("Completed: Paris")
	recorded(v1beta1.DebugCompleted)
	var codes []int32
	for _, attempt := range step.Attempts {
		codes = append(codes, attempt.Exchanges[0].StatusCode)
	}
	check.Equal(t, "the answers to its attempts", []int32{529, 200}, codes)
	check.Equal(t, "the prompt", "My key is [redacted]", step.Request.Messages[0].Parts[0].Text)
	check.Equal(t, "the reply", "Paris", step.Response.Parts[0].Text)
}

func TestHundredAttemptsAtOnceLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	const chats = 100
	p := startPod(t, usesTool, nil)
	p.settled() // What is there now, stays.
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	before := runtime.NumGoroutine()
	conversations := make([]*conversation, chats)
	for i := range conversations {
		conversations[i] = p.newChat(fmt.Sprint("many-", i), nil)
	}
	var asking sync.WaitGroup
	for i, c := range conversations {
		asking.Go(func() { c.ask(fmt.Sprint("many-", i, "-u"), fmt.Sprint("question of chat ", i)) })
	}
	asking.Wait()
	for _, c := range conversations {
		m := c.result()
		check.Equal(t, c.chat.Name, []any{v1beta1.OutcomeCompleted, 2},
			[]any{m.Spec.Generation.Outcome, m.Spec.Generation.PendingCalls})
		c.commit(m, "")
	}
	check.Equal(t, "the model was asked", chats+1, len(p.models.Requests()))
	p.eventually("the model's requests are over", func() bool { return p.models.InFlight() == 0 })
	p.stop()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	buffer := make([]byte, 1<<20)
	p.eventually("the goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before: %s", after, before, buffer[:runtime.Stack(buffer, true)])
	}
}
