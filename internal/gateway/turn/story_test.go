// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/test/kit/check"
)

// chat writes the events of a chat.
type chat struct {
	t      *testing.T
	events []stream.Event
}

func (c *chat) add(name string, data any) *chat {
	c.t.Helper()
	raw, err := json.Marshal(data)
	check.OK(c.t, err)
	c.events = append(c.events, stream.Event{Name: name, Data: raw})
	return c
}

func (c *chat) asked(name string) *chat {
	m := stream.Message{Name: name, Role: v1beta1.RoleUser}
	return c.add(stream.EventMessage, stream.MessageCommitted{Message: m})
}

// says is a part of an attempt.
func (c *chat) says(attempt int32, kind parts.Type, text string) *chat {
	return c.add(stream.EventMessagePart, stream.MessagePart{HistoryVersion: 1, Attempt: attempt, Role: "Assistant",
		Part: parts.Part{Type: kind, Text: text}})
}

func (c *chat) calling(attempt int32, tool string) *chat {
	return c.add(stream.EventMessagePart, stream.MessagePart{HistoryVersion: 1, Attempt: attempt, Role: "Assistant",
		Part: parts.Part{Type: parts.ToolInput, Name: tool, Text: "{"}})
}

// commits is a reply that becomes part of the history.
func (c *chat) commits(said ...v1beta1.MessagePart) *chat {
	return c.add(stream.EventMessage, stream.MessageCommitted{Message: stream.Message{Name: "reply", Attempt: 1,
		Role: v1beta1.RoleAssistant, Parts: said, ReplyOutcome: v1beta1.ReplyComplete, Outcome: v1beta1.OutcomeCompleted,
		Usage: &v1beta1.TokenUsage{InputTokens: 3, OutputTokens: 2}}})
}

func (c *chat) runs() *chat {
	return c.add(stream.EventMessage, stream.MessageCommitted{Message: stream.Message{Name: "results", Attempt: 1,
		Role: v1beta1.RoleTool}})
}

func (c *chat) ends(result v1beta1.TurnResult) *chat {
	return c.add(stream.EventStatus, stream.Status{Turn: "q", Result: result})
}

func text(s string) v1beta1.MessagePart {
	return v1beta1.MessagePart{Type: v1beta1.PartText, Text: &s}
}

func thought(s string) v1beta1.MessagePart {
	return v1beta1.MessagePart{Type: v1beta1.PartReasoning, Text: &s}
}

func call(id, name string, of v1beta1.RequiredAction) v1beta1.MessagePart {
	return v1beta1.MessagePart{Type: v1beta1.PartToolCall,
		ToolCall: &v1beta1.ToolCall{ID: id, Name: name, Input: "{}", RequiresAction: of}}
}

// told writes down the events of a story, in short.
func (c *chat) told() (lines []string, err error) {
	return c.toldWith(&turn.Story{})
}

func (c *chat) toldWith(s *turn.Story) (lines []string, err error) {
	s.Message, s.ClientTools = "q", []string{"weather"}
	s.Send = func(e turn.Event) error {
		switch e.Kind {
		case turn.BlockStart:
			lines = append(lines, fmt.Sprintf("%d opens %s %s", e.Index, e.Block.Kind, e.Block.Name))
		case turn.BlockDelta:
			lines = append(lines, fmt.Sprintf("%d + %q", e.Index, e.Text))
		case turn.BlockEnd:
			lines = append(lines, fmt.Sprintf("%d is %q", e.Index, e.Block.Text))
		case turn.AnswerEnd:
			line := fmt.Sprintf("ends %s %s %d", e.End.Outcome, e.End.Reply, e.End.Usage.OutputTokens)
			if e.End.Error != nil {
				line += " " + string(e.End.Error.Reason)
			}
			lines = append(lines, strings.TrimSpace(line))
		}
		return nil
	}
	for _, e := range c.events {
		if err := s.Take(e); err != nil {
			return lines, err
		}
	}
	return lines, nil
}

// Security (a client of OpenAI's protocols): cannot receive, and so run, a call that the chat does not know.
func TestAStoryTellsTheAnswerToOneMessage(t *testing.T) {
	hello := []string{"0 opens Text ", `0 + "Hel"`, `0 + "lo"`, `0 is "Hello"`, "ends Completed Complete 2"}
	answered := v1beta1.TurnAnswered
	for name, c := range map[string]struct {
		chat func(*chat)
		want []string
	}{
		"what comes live is not told again when it is committed": {func(c *chat) {
			c.asked("q").says(1, parts.Text, "Hel").says(1, parts.Text, "lo").commits(text("Hello")).ends(answered)
		}, hello},
		"a turn that a budget holds has failed for the client": {func(c *chat) {
			c.asked("q").commits(text("Hello")).add(stream.EventStatus, stream.Status{Turn: "q", Phase: v1beta1.ChatRunning,
				Ready: metav1.ConditionFalse, Reason: string(v1beta1.ErrorBudgetReached), Message: "It is spent."})
		}, []string{"0 opens Text ", `0 + "Hello"`, `0 is "Hello"`, "ends Failed  2 BudgetReached"}},
		"what was said before the message is another answer": {func(c *chat) {
			c.asked("earlier").commits(text("Earlier.")).ends(answered).asked("q").says(1, parts.Text, "Hel").
				says(1, parts.Text, "lo").commits(text("Hello")).ends(answered)
		}, hello},
		"an attempt that says the same again goes on where the lost one ended": {func(c *chat) {
			c.asked("q").says(1, parts.Text, "Hel").says(2, parts.Text, "H").says(2, parts.Text, "ello").
				commits(text("Hello")).ends(answered)
		}, hello},
		"a history that is told again is not told the client again": {func(c *chat) {
			c.asked("q").says(1, parts.Text, "Hel").says(1, parts.Text, "lo").commits(text("Hello")).
				add(stream.EventHistoryReset, struct{}{}).asked("q").commits(text("Hello")).ends(answered)
		}, hello},
		"a history alone tells the same in one piece": {func(c *chat) {
			c.asked("q").commits(text("Hello")).ends(answered)
		}, []string{"0 opens Text ", `0 + "Hello"`, `0 is "Hello"`, "ends Completed Complete 2"}},
		"steps and kinds are blocks of their own, tools of the chat none": {func(c *chat) {
			c.asked("q").commits(thought("Hm."), text("I "), text("look."), call("c1", "execute", "")).runs().
				commits(text("Done.")).ends(answered)
		}, []string{"0 opens Reasoning ", `0 + "Hm."`, `0 is "Hm."`, "1 opens Text ", `1 + "I look."`, `1 is "I look."`,
			"2 opens Text ", `2 + "Done."`, `2 is "Done."`, "ends Completed Complete 4"}},
		"a client's call is told once it is committed, and ends the answer": {func(c *chat) {
			c.asked("q").says(1, parts.Text, "Let me look.").calling(1, "weather").
				commits(text("Let me look."), call("c1", "weather", v1beta1.RequiresClient)).
				add(stream.EventRequiresAction, stream.RequiresAction{ToolCalls: []v1beta1.PendingToolCall{
					{ID: "c1", Name: "weather", Kind: v1beta1.RequiresClient}}})
		}, []string{"0 opens Text ", `0 + "Let me look."`, `0 is "Let me look."`, "1 opens Call weather", `1 + "{}"`,
			`1 is "{}"`, "ends RequiresAction  2"}},
		"a call that people decide about is waited for": {func(c *chat) {
			c.asked("q").commits(call("c1", "execute", v1beta1.RequiresApproval)).
				add(stream.EventRequiresAction, stream.RequiresAction{ToolCalls: []v1beta1.PendingToolCall{
					{ID: "c1", Name: "execute", Kind: v1beta1.RequiresApproval}}})
		}, nil},
		"an error ends the answer with what was said": {func(c *chat) {
			c.asked("q").says(1, parts.Text, "Hel").ends(v1beta1.TurnFailed).
				add(stream.EventError, stream.Error{Reason: v1beta1.ErrorOverloaded})
		}, []string{"0 opens Text ", `0 + "Hel"`, `0 is "Hel"`, "ends Failed  0 Overloaded"}},
		"an error of an earlier turn is none of this one": {func(c *chat) {
			c.ends(v1beta1.TurnFailed).add(stream.EventError, stream.Error{Reason: v1beta1.ErrorOverloaded})
		}, nil},
		"an interruption ends the answer": {func(c *chat) {
			c.asked("q").ends(v1beta1.TurnInterrupted)
		}, []string{"ends Interrupted  0 Interrupted"}},
		"an interruption keeps the answer so far": {func(c *chat) {
			c.asked("q").says(1, parts.Text, "Hel").ends(v1beta1.TurnInterrupted)
		}, []string{"0 opens Text ", `0 + "Hel"`, `0 is "Hel"`, "ends Interrupted  0"}},
		"a limit ends the answer before the model does": {func(c *chat) {
			c.asked("q").ends(v1beta1.TurnMaxStepsReached)
		}, []string{"ends Completed MaxTokensReached 0"}},
		"the next message ends the answer": {func(c *chat) {
			c.asked("q").commits(text("Hello")).asked("next")
		}, []string{"0 opens Text ", `0 + "Hello"`, `0 is "Hello"`, "ends Completed Complete 2"}},
		"a message that leaves the history ends the answer": {func(c *chat) {
			c.asked("q").says(1, parts.Text, "Hel").add(stream.EventHistoryReset, struct{}{}).asked("earlier").
				add(stream.EventStatus, stream.Status{HistoryVersion: 3, Turn: "earlier"})
		}, []string{"0 opens Text ", `0 + "Hel"`, `0 is "Hel"`, "ends Failed  0 MessageDeleted"}},
		"an edit of the message begins its answer again": {func(c *chat) {
			c.asked("q").add(stream.EventHistoryReset, struct{}{}).asked("q").
				add(stream.EventStatus, stream.Status{HistoryVersion: 3, Turn: "q"}).commits(text("Hello")).ends(answered)
		}, []string{"0 opens Text ", `0 + "Hello"`, `0 is "Hello"`, "ends Completed Complete 2"}},
		"a chat that is deleted ends the answer": {func(c *chat) {
			c.asked("q").add(stream.EventDeleted, struct{}{})
		}, []string{"ends Failed  0 ChatDeleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			story := &chat{t: t}
			c.chat(story)
			told, err := story.told()
			check.OK(t, err)
			check.Equal(t, "events", c.want, told)
		})
	}
}

func TestMessageThatLeftBeforeTheStoryEndsIt(t *testing.T) {
	story := &chat{t: t}
	for version := range int64(4) { // A gateway may learn of the commit after its caller.
		story.add(stream.EventStatus, stream.Status{HistoryVersion: version})
		told, err := story.toldWith(&turn.Story{Version: 3})
		check.OK(t, err)
		check.Equal(t, fmt.Sprintf("it has ended at version %d", version), version == 3, len(told) == 1)
	}
}

func TestStoryEndsWhenTheChatDiverges(t *testing.T) {
	for name, c := range map[string]func(*chat){
		"another attempt": func(c *chat) {
			c.asked("q").says(1, parts.Text, "Hel").says(2, parts.Text, "Good")
		},
		"another kind of block": func(c *chat) {
			c.asked("q").says(1, parts.Text, "Hel").says(2, parts.Reasoning, "Hel")
		},
		"a shorter reply": func(c *chat) {
			c.asked("q").says(1, parts.Text, "Hello").commits(text("Hel"))
		},
		"a call in place of the text": func(c *chat) {
			c.asked("q").says(1, parts.Text, "Hel").commits(call("c1", "weather", v1beta1.RequiresClient))
		},
		"an edited history": func(c *chat) {
			c.asked("q").commits(text("Hello")).add(stream.EventHistoryReset, struct{}{}).asked("q").commits(text("Good day"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			story := &chat{t: t}
			c(story)
			if told, err := story.told(); !errors.Is(err, turn.ErrDiverged) {
				t.Errorf("told was %q, %v", told, err)
			}
		})
	}
}

func TestAnAnswerThatIsTooLongEnds(t *testing.T) {
	story := (&chat{t: t}).asked("q").commits(text(strings.Repeat("a", turn.MaxAnswer))).commits(text("b"))
	if _, err := story.told(); !errors.Is(err, turn.ErrTooLong) {
		t.Error(err)
	}
}

func TestSupersededAnswerEndsAsItsMessageTells(t *testing.T) {
	story := (&chat{t: t}).asked("q").asked("next")
	told, err := story.toldWith(&turn.Story{Ready: &metav1.Condition{Status: "False", Reason: "Overloaded"}})
	if diff := cmp.Diff([]string{"ends Failed  0 Overloaded"}, told); err != nil || diff != "" {
		t.Error(diff, err)
	}
}

func TestOnlyTheAnswerOfJSONIsTold(t *testing.T) {
	const wrong, right = `{"n": "x"}`, `{"n": 1}`
	answer := []string{"0 opens Text ", "0 + " + fmt.Sprintf("%q", right), "0 is " + fmt.Sprintf("%q", right)}
	for name, c := range map[string]struct {
		chat func(*chat)
		want []string
	}{
		"an answer": {func(c *chat) {
			c.asked("q").says(1, parts.Text, right).commits(text(right)).ends(v1beta1.TurnAnswered)
		}, append(slices.Clone(answer), "ends Completed Complete 2")},
		"tools and an answer that does not match before": {func(c *chat) {
			c.asked("q").says(1, parts.Text, "Let me look.").commits(text("Let me look."), call("c1", "execute", "")).runs().
				says(2, parts.Text, wrong).commits(text(wrong)).says(3, parts.Text, right).commits(text(right)).
				ends(v1beta1.TurnAnswered)
		}, append(slices.Clone(answer), "ends Completed Complete 6")},
		"reasoning around it": {func(c *chat) {
			c.asked("q").says(1, parts.Reasoning, "A").says(1, parts.Text, right).says(1, parts.Reasoning, "B").
				commits(thought("A"), text(right), thought("B")).ends(v1beta1.TurnAnswered)
		}, []string{"0 opens Reasoning ", `0 + "A"`, `0 + "B"`, `0 is "AB"`, "1 opens Text ",
			"1 + " + fmt.Sprintf("%q", right), "1 is " + fmt.Sprintf("%q", right), "ends Completed Complete 2"}},
		"a call of the client": {func(c *chat) {
			c.asked("q").says(1, parts.Text, "Let me look.").
				commits(text("Let me look."), call("c1", "weather", v1beta1.RequiresClient)).
				add(stream.EventRequiresAction, stream.RequiresAction{ToolCalls: []v1beta1.PendingToolCall{
					{ID: "c1", Name: "weather", Kind: v1beta1.RequiresClient}}})
		}, []string{"0 opens Call weather", `0 + "{}"`, `0 is "{}"`, "ends RequiresAction  2"}},
		"a failure": {func(c *chat) {
			c.asked("q").commits(text(wrong)).ends(v1beta1.TurnFailed).
				add(stream.EventError, stream.Error{Reason: v1beta1.ErrorOutputInvalid})
		}, []string{"ends Failed  2 OutputInvalid"}},
		"an interruption": {func(c *chat) {
			c.asked("q").says(1, parts.Text, `{"n"`).ends(v1beta1.TurnInterrupted)
		}, []string{"ends Interrupted  0 Interrupted"}},
	} {
		t.Run(name, func(t *testing.T) {
			story := &chat{t: t}
			c.chat(story)
			told, err := story.toldWith(&turn.Story{JSON: true})
			if diff := cmp.Diff(c.want, told); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}
