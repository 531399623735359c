// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// record leaves a recording behind, as a generation pod would.
func (p *person) record(chat string, version int64, change func(*v1beta1.DebugRecording)) {
	p.t.Helper()
	began := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, int(version), 0, time.UTC))
	step := &v1beta1.ChatDebugStep{ObjectMeta: p.meta(fmt.Sprintf("%s-%d-generateassistant", chat, version)),
		DebugRecording: v1beta1.DebugRecording{
			ChatRef: v1beta1.ChatReference{Name: chat}, ChatUID: "uid", HistoryVersion: version,
			Action: v1beta1.ActionGenerateAssistant, Call: 1,
			Pod: "generation-b", Attempt: 1, State: v1beta1.DebugInProgress, StartedAt: began,
			Model: v1beta1.ModelIdentity{Config: "default", Provider: "anthropic", Name: "claude"},
		}}
	step.Annotations = map[string]string{v1beta1.AnnotationExpiresAt: "2030-01-01T00:00:00Z"}
	if change != nil {
		change(&step.DebugRecording)
	}
	p.create(step)
}

// whole makes a recording of a call that was answered at the second attempt.
func whole(s *v1beta1.DebugRecording) {
	until := metav1.NewMicroTime(s.StartedAt.Add(1500 * time.Millisecond))
	s.Attempt, s.State, s.FinishedAt = 2, v1beta1.DebugCompleted, &until
	s.Request = v1beta1.DebugRequest{
		OmittedMessages: 3, Options: `{"maxOutputTokens":77}`, ToolChoice: "auto",
		Tools: []v1beta1.DebugTool{{Name: "current_time"}, {Name: "open_ticket"}},
		Messages: []v1beta1.DebugMessage{{Role: "user", OmittedParts: 1, Parts: []v1beta1.DebugPart{
			{Type: v1beta1.DebugText, Text: "What time\nis it?"},
			{Type: v1beta1.DebugFile, Name: "a.png", MediaType: "image/png", Bytes: 7},
		}}},
	}
	s.Response = &v1beta1.DebugResponse{
		FinishReason: "tool-calls", Warnings: []string{"unsupported-setting: topK"},
		Usage: v1beta1.TokenUsage{InputTokens: 60, CacheReadTokens: 40, OutputTokens: 50, ReasoningTokens: 20,
			TotalTokens: 150},
		Parts: []v1beta1.DebugPart{{Type: v1beta1.DebugToolCall, Name: "current_time", ID: "call_1", Text: "{}"}},
	}
	s.Attempts = []v1beta1.DebugAttempt{
		{Number: 1, Pod: "generation-a", Model: s.Model, State: v1beta1.DebugError, StartedAt: s.StartedAt,
			FinishedAt: &until,
			Error:      &v1beta1.DebugFault{Reason: v1beta1.ErrorOverloaded, StatusCode: 529, Retryable: true},
			Exchanges: []v1beta1.DebugExchange{{Number: 1, Method: "POST", URL: "https://models.test/v1/messages",
				StatusCode: 529, HeadersMilliseconds: 12, DurationMilliseconds: 13, ResponseBody: `{"body":1}`,
				StartedAt: s.StartedAt}}},
		{Number: 2, Pod: "generation-b", Model: v1beta1.ModelIdentity{Name: "local"}, State: v1beta1.DebugCompleted,
			StartedAt: s.StartedAt, FinishedAt: &until,
			Exchanges: []v1beta1.DebugExchange{{Number: 1, Method: "POST", URL: "https://models.test/v1/messages",
				Failure: v1beta1.DebugNoResponse, StartedAt: s.StartedAt}}},
	}
}

const wholeStep = `GenerateAssistant for version 2 of chat triage, by claude (anthropic, ChatModelConfig default)
Completed, attempt 2, begun BEGUN, took 1.5s
ChatDebugStep triage-2-generateassistant, kept until 2030-01-01T00:00:00Z

REQUEST
  options: {"maxOutputTokens":77}
  tools: current_time, open_ticket (choice: auto)
  [3 of the oldest messages are left out]
  user Text
    What time
    is it?
  user File a.png image/png 7 bytes
    [1 more parts are left out]

RESPONSE
  finished: tool-calls; tokens: 60 in, 40 from and 0 into the cache, 50 out, 20 of them reasoning
  warning: unsupported-setting: topK
  assistant ToolCall current_time call_1
    {}

ATTEMPTS
  1: claude, Error Overloaded (529), may succeed later, took 1.5s, by pod generation-a
     POST https://models.test/v1/messages: 529 after 12ms, whole after 13ms
  2: local, Completed, took 1.5s, by pod generation-b
     POST https://models.test/v1/messages: no response (NoResponse)
`

func (p *person) shows(args ...string) (out, errOut string) {
	p.t.Helper()
	c := p.run(append([]string{"debug"}, args...)...)
	c.succeeds()
	return c.out.String(), c.errOut.String()
}

func TestDebugTellsOfWhatWasRecorded(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	if out, errOut := p.shows("triage"); out != "" || !strings.Contains(errOut, `{"spec":{"debug":{"enabled":true}}}`) {
		t.Errorf("without recordings: %q and %q", out, errOut)
	}
	p.record("triage", 2, whole)
	p.record("other", 1, nil)
	for version := range int64(25) { // more than one page
		p.record("triage", version+3, func(s *v1beta1.DebugRecording) {
			s.State, s.Error = v1beta1.DebugError, &v1beta1.DebugFault{Reason: v1beta1.ErrorRateLimited}
		})
	}
	p.record("triage", 1, nil)

	out, _ := p.shows("triage")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 28 || !strings.HasPrefix(lines[0], "STEP") {
		t.Fatalf("listed %d lines: %s", len(lines), out)
	}
	for i, want := range [][]string{
		{"1", "GenerateAssistant", "claude", "InProgress", "<none>", "1", "<unknown>", "<none>"},
		{"2", "GenerateAssistant", "claude", "Completed", "<none>", "2", "1.5s", "150"},
		{"3", "GenerateAssistant", "claude", "Error", "RateLimited", "1", "<unknown>", "<none>"},
	} {
		fields := strings.Fields(lines[i+1])
		if got := append(fields[:1:1], fields[3:]...); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("listed %q, want %q", got, want)
		}
	}
	out, errOut := p.shows("triage", "--step", "2")
	begun := time.Date(2026, 1, 2, 3, 4, 2, 0, time.UTC).Local().Format(time.DateTime)
	if want := strings.Replace(wholeStep, "BEGUN", begun, 1); out != want {
		t.Errorf("shown\n%s\nwant\n%s", out, want)
	}
	check.Contains(t, errOut, "debug triage --step 2 -o yaml]")
	if out, _ := p.shows("triage", "--step", "1"); !strings.Contains(out, "RESPONSE\n  none\n") {
		t.Errorf("shown %s", out)
	}
}

func TestDebugPrintsRecordingsForPrograms(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.record("triage", 1, nil)
	p.record("triage", 2, whole)
	var step v1beta1.ChatDebugStep
	out, _ := p.shows("triage", "--step", "2", "-o", "yaml")
	if err := yaml.UnmarshalStrict([]byte(out), &step); err != nil || step.Kind != "ChatDebugStep" ||
		step.Attempts[0].Exchanges[0].ResponseBody != `{"body":1}` || step.ManagedFields != nil {
		t.Errorf("printed %s, %v", out, err)
	}
	if out, _ := p.shows("triage", "-o", "yaml"); strings.Count(out, "kind: ChatDebugStep\n") != 2 ||
		strings.Count(out, "---\n") != 1 {
		t.Errorf("printed %s", out)
	}
	out, _ = p.shows("triage", "-o", "json")
	for line := range strings.Lines(out) {
		if err := json.Unmarshal([]byte(line), &step); err != nil || step.Kind != "ChatDebugStep" {
			t.Errorf("printed %s, %v", line, err)
		}
	}
}

func TestDebugSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.record("triage", 1, nil)
	for want, args := range map[string][]string{
		"chat triage has no recorded model call 2: there are 1 to 1": {"debug", "triage", "--step", "2"},
		"there is triage":        {"debug", "other"},
		"it can be json or yaml": {"debug", "triage", "-o", "wide"},
	} {
		p.run(args...).fails(want)
	}
}

func TestDebugListsTurnsWithWhatTheyCameTo(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	of := func(message string, version int64, by string,
		more func(*v1beta1.DebugRecording)) func(*v1beta1.DebugRecording) {
		return func(s *v1beta1.DebugRecording) {
			s.Turn, s.Head, s.State = &v1beta1.DebugTurn{Message: message, Version: version, CreatedBy: by}, "triage-0-1",
				v1beta1.DebugCompleted
			if more != nil {
				more(s)
			}
		}
	}
	priced := func(s *v1beta1.DebugRecording) {
		whole(s)
		s.Cost = &v1beta1.Cost{Currency: "USD", MicroUnits: 4200}
	}
	p.record("triage", 1, of("triage-prompt", 1, "", priced))
	p.record("triage", 2, of("triage-x", 4, "", nil))
	p.record("triage", 3, of("triage-prompt", 1, "alice", priced))
	p.record("triage", 4, of("triage-prompt", 9, "", nil)) // It was edited: another turn.
	out, _ := p.shows("triage")
	var got []string
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); fields[0] == "TURN" {
			got = append(got, strings.TrimSpace(line))
		} else {
			got = append(got, fields[0])
		}
	}
	want := []string{"STEP", "TURN of triage-prompt by alice: 2 model calls, 2 errors, 300 tokens, 0.0084 USD", "1", "2",
		"TURN of triage-x: 1 model call, 0 errors, 0 tokens", "3", "TURN of triage-prompt: 1 model call, 0 errors, 0 tokens",
		"4"}
	check.Equal(t, "list", want, got)
	if out, _ := p.shows("triage", "--step", "2"); !strings.Contains(out,
		"\npart of the turn of triage-prompt by alice, behind message triage-0-1\n") {
		t.Errorf("shown %s", out)
	}
}
