// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/client"
)

// ErrDiverged means that the chat says something else now than the client was told: an attempt was lost and another one
// says it in other words, or a message was edited. The answer can be retrieved.
var ErrDiverged = errors.New("the chat generated the answer again, and it differs from what was streamed")

// MaxAnswer is the most bytes of texts of an answer that are told: 8 MiB.
const MaxAnswer = 8 << 20

// ErrTooLong means that an answer is longer than MaxAnswer. The chat goes on.
var ErrTooLong = errors.New("the answer has more than 8 MiB: follow the chat itself")

// Reasons of answers that end because somebody has deleted what they are of. Chats have no such errors.
const (
	ChatDeleted    v1alpha1.ErrorReason = "ChatDeleted"
	MessageDeleted v1alpha1.ErrorReason = "MessageDeleted"
)

// Story makes the events of an answer from those of its chat. It belongs to one goroutine.
type Story struct {
	// Message is the name of the message that is answered.
	Message string
	// ClientTools are the names of the tools that the client runs.
	ClientTools []string
	// Ready is what the message said of its turn when the story began; nil if it said nothing final. It counts if another
	// message follows.
	Ready *metav1.Condition
	// JSON is whether the answer is JSON. Then its text is sent when it has ended: texts of steps that call tools, and of
	// answers that do not match the schema, are no part of it, and cannot be taken back.
	JSON bool
	// Send takes an event. An error ends the story.
	Send func(Event) error

	chat      client.Transcript
	turn      client.Turn
	over      bool
	shown     []Block // what was sent; the last one is open unless sealed
	sealed    bool
	said      []Block // what the chat says: committed blocks, and those of the attempt under way
	committed int     // how many of said are committed
	text      string  // of the newest reply, if the answer is JSON
	bytes     int     // of shown
}

// Begun reports whether the message is part of the history.
func (s *Story) Begun() bool { return s.turn.Committed }

// Held reports whether the answer has ended because a budget holds the turn, which has not ended itself.
func (s *Story) Held() bool { return s.over && s.turn.Committed && s.turn.Held }

// Over reports whether the answer has ended.
func (s *Story) Over() bool { return s.over }

// Present is the newest status of the chat; nil before the first.
func (s *Story) Present() *stream.Status { return s.chat.Status }

// Tell takes an event of the chat.
func (s *Story) Tell(e stream.Event) error {
	if s.over {
		return nil
	}
	u, err := client.Decode(e)
	if err != nil {
		return err
	}
	live, status := s.chat.Live, s.chat.Status
	s.chat.Outline = true
	s.chat.Take(u)
	if p, ok := u.(*stream.MessagePart); ok {
		return s.part(p, s.chat.Live != live)
	}
	s.turn = s.chat.Turn(s.Message)
	switch u := u.(type) {
	case *stream.MessageCommitted:
		return s.message(&u.Message)
	case *stream.Status:
		return s.status(status, u)
	case *stream.Error:
		return s.failed(u)
	case *stream.RequiresAction:
		return s.action(u)
	case *client.Reset:
		s.said, s.committed, s.text = nil, 0, ""
	case client.Deleted:
		return s.End(End{Outcome: Failed, Error: &stream.Error{Reason: ChatDeleted, Message: "the chat was deleted"}})
	}
	return nil
}

// message takes a committed message: the one that is answered, a step of the answer, or what ends it.
func (s *Story) message(m *stream.Message) error {
	switch {
	case !s.turn.Committed, m.Name == s.Message:
		return nil
	case s.turn.Next != nil:
		return s.End(s.superseded())
	case m.Role != v1alpha1.RoleAssistant:
		return nil
	}
	s.said = append(s.said[:s.committed], s.blocksOf(m)...)
	s.committed = len(s.said)
	if s.JSON {
		s.text = answer(m)
	}
	return s.show(true)
}

// step is the number of the newest reply.
func (s *Story) step() int { return len(s.turn.Replies) - 1 }

// blocksOf are the blocks of a reply.
func (s *Story) blocksOf(m *stream.Message) (blocks []Block) {
	step := s.step()
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Type == v1alpha1.PartText && p.Text != nil && !s.JSON:
			blocks = grow(blocks, Text, *p.Text, step)
		case p.Type == v1alpha1.PartReasoning && p.Text != nil:
			blocks = grow(blocks, Reasoning, *p.Text, step)
		case p.Type == v1alpha1.PartToolCall && p.ToolCall.RequiresAction == v1alpha1.RequiresClient:
			c := p.ToolCall
			blocks = append(blocks, Block{Kind: Call, ID: c.ID, Name: c.Name, Text: c.Input, Step: step})
		}
	}
	return blocks
}

// grow adds a piece to the last block if that is of its kind and step.
func grow(blocks []Block, kind BlockKind, text string, step int) []Block {
	if text == "" {
		return blocks
	}
	if n := len(blocks); n > 0 && blocks[n-1].Kind == kind && blocks[n-1].Step == step {
		blocks[n-1].add(text)
		return blocks
	}
	return append(blocks, Block{Kind: kind, Text: text, Step: step})
}

// part takes a part of the attempt under way. A call is shown once it is committed, since a client runs it at once:
// nothing behind it is shown before.
func (s *Story) part(p *stream.MessagePart, isFirst bool) error {
	if !s.turn.Committed || p.Role != string(v1alpha1.RoleAssistant) {
		return nil
	}
	if isFirst {
		s.said = s.said[:s.committed]
	}
	switch p.Part.Type {
	case parts.Text:
		if s.JSON {
			return nil
		}
		s.said = s.live(Text, p.Part.Text)
	case parts.Reasoning:
		s.said = s.live(Reasoning, p.Part.Text)
	case parts.ToolInput, parts.ToolCall:
		if slices.Contains(s.ClientTools, p.Part.Name) {
			s.said = append(s.said, Block{Kind: Call, Step: s.step() + 1})
		}
		return nil
	}
	return s.show(false)
}

// live adds a piece of the attempt under way. Blocks of committed steps do not grow.
func (s *Story) live(kind BlockKind, text string) []Block {
	return append(s.said[:s.committed], grow(s.said[s.committed:], kind, text, s.step()+1)...)
}

// status takes how the chat stands: it says when the turn has ended.
func (s *Story) status(before, now *stream.Status) error {
	if before == nil && now.Wait != nil || before != nil && !same(before.Wait, now.Wait) {
		if err := s.Send(Event{Kind: Waiting, Wait: now.Wait}); err != nil {
			return err
		}
	}
	if end := s.endOf(now); s.turn.Committed && end != nil {
		return s.End(*end)
	}
	return nil
}

// endOf is how a turn with that status ends; nil if it continues. If the turn failed, the next event contains the
// error.
func (s *Story) endOf(now *stream.Status) *End {
	switch s.turn.Result {
	case v1alpha1.TurnAnswered, v1alpha1.TurnCutByLength, v1alpha1.TurnRefused, v1alpha1.TurnStoppedAfterTool:
		return &End{Outcome: Completed, Reply: s.reply()}
	case v1alpha1.TurnMaxStepsReached:
		return &End{Outcome: Completed, Reply: v1alpha1.ReplyCutByLength}
	case v1alpha1.TurnInterrupted:
		return &End{Outcome: Interrupted}
	}
	if s.turn.Held { // The client is not kept waiting for a person.
		return &End{Outcome: Failed, Error: &stream.Error{Reason: v1alpha1.ErrorReason(now.Reason), Message: now.Message}}
	}
	return nil
}

// same reports whether two waits say the same.
func same(a, b *v1alpha1.ChatWait) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.For == b.For && a.Reason == b.Reason && a.Message == b.Message
}

// reply is how the newest reply ended; empty if there is none.
func (s *Story) reply() v1alpha1.ReplyOutcome {
	if last := s.last(); last != nil {
		return last.ReplyOutcome
	}
	return ""
}

// last is the newest reply; nil if there is none.
func (s *Story) last() *stream.Message {
	if len(s.turn.Replies) == 0 {
		return nil
	}
	return &s.turn.Replies[s.step()]
}

// failed takes why the turn failed, unless it is an earlier one's.
func (s *Story) failed(e *stream.Error) error {
	if !s.turn.Committed || s.turn.Result != v1alpha1.TurnFailed {
		return nil
	}
	return s.End(End{Outcome: Failed, Error: e})
}

// action takes what the turn waits for. What people decide, the client waits for.
func (s *Story) action(a *stream.RequiresAction) error {
	ofClient := func(c v1alpha1.PendingToolCall) bool { return c.Kind == v1alpha1.RequiresClient }
	if !s.turn.Committed || !slices.ContainsFunc(a.ToolCalls, ofClient) {
		return nil
	}
	return s.End(End{Outcome: RequiresAction})
}

// superseded is how an answer ended behind which the conversation has gone on.
func (s *Story) superseded() End {
	if r := s.Ready; r != nil && r.Status == "False" && r.Reason == string(v1alpha1.TurnInterrupted) {
		return End{Outcome: Interrupted}
	} else if r != nil && r.Status == "False" {
		return End{Outcome: Failed, Error: &stream.Error{Reason: v1alpha1.ErrorReason(r.Reason), Message: r.Message}}
	}
	switch last := s.last(); {
	case last == nil, last.Outcome == v1alpha1.OutcomeInterrupted:
		return End{Outcome: Interrupted}
	case s.calls():
		return End{Outcome: RequiresAction}
	}
	return End{Outcome: Completed, Reply: s.reply()}
}

// calls reports whether the newest step has calls for the client.
func (s *Story) calls() bool {
	return slices.ContainsFunc(s.said[:s.committed], func(b Block) bool { return b.Kind == Call && b.Step == s.step() })
}

// End ends the answer. Blocks of an attempt that came to nothing have been told already, and stay.
func (s *Story) End(end End) error {
	end.Usage = s.turn.Usage
	if s.JSON && end.Outcome == Completed {
		s.said = grow(s.said[:s.committed], Text, s.text, s.step())
		s.committed = len(s.said)
		if err := s.show(true); err != nil {
			return err
		}
	}
	if err := s.seal(); err != nil {
		return err
	}
	s.over = true
	return s.Send(Event{Kind: Ended, End: &end})
}

// answer is the text of a reply; empty if it calls tools.
func answer(m *stream.Message) string {
	var b strings.Builder
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Type == v1alpha1.PartToolCall:
			return ""
		case p.Type == v1alpha1.PartText && p.Text != nil:
			b.WriteString(*p.Text)
		}
	}
	return b.String()
}
