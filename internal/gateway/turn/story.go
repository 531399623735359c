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
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
)

// ErrDiverged means that the chat contradicts what the client received: an attempt was lost and the next one differs,
// or a message was edited. The answer can be retrieved.
var ErrDiverged = errors.New("the chat generated the answer again, and it differs from what was streamed")

// MaxAnswer is the most bytes of texts of an answer: 8 MiB.
const MaxAnswer = 8 << 20

// ErrTooLong means that an answer is longer than MaxAnswer. The chat continues.
var ErrTooLong = errors.New("the answer has more than 8 MiB: follow the chat itself")

// Reasons of answers that end because the chat or the message was deleted, or because someone stopped the turn before
// anything was sent. Chats have no such errors.
const (
	ChatDeleted     v1beta1.ErrorReason = "ChatDeleted"
	MessageDeleted  v1beta1.ErrorReason = "MessageDeleted"
	TurnInterrupted v1beta1.ErrorReason = "Interrupted"
)

// Story makes the events of an answer from those of its chat. It belongs to one goroutine.
type Story struct {
	// Message is the name of the message that is answered.
	Message string
	// Version of the history that the message's commit made, as its status says; 0 if it is not committed there.
	Version int64
	// ClientTools are the names of the tools that the client runs.
	ClientTools []string
	// Ready is the final condition of the message when the story began; nil if it had none. It is used if another message
	// follows.
	Ready *metav1.Condition
	// JSON is whether the answer is JSON. Then its text is sent when it has ended: texts of steps that call tools, and of
	// answers that do not match the schema, are no part of it, and could not be taken back.
	JSON bool
	// Send sends an event. An error ends the story.
	Send func(Event) error

	chat      client.Transcript
	turn      client.Turn
	begun     bool // whether the message was part of the history
	over      bool
	sent      []Block // the last one is open unless closed
	closed    bool
	blocks    []Block // of the chat: committed ones, and those of the running attempt
	committed int     // how many of blocks are committed
	text      string  // of the newest reply, if the answer is JSON
	bytes     int     // of sent
}

// IsCommitted reports whether the message is part of the history.
func (s *Story) IsCommitted() bool { return s.turn.Committed }

// IsHeld reports whether the answer has ended because a budget holds the turn, which has not ended itself.
func (s *Story) IsHeld() bool { return s.over && s.turn.Committed && s.turn.Held }

// IsOver reports whether the answer has ended.
func (s *Story) IsOver() bool { return s.over }

// Status is the newest status of the chat; nil before the first.
func (s *Story) Status() *stream.Status { return s.chat.Status }

// Take takes an event of the chat.
func (s *Story) Take(e stream.Event) error {
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
	s.findTurn()
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
		s.blocks, s.committed, s.text = nil, 0, ""
	case client.Deleted:
		return s.End(End{Outcome: Failed, Error: &stream.Error{Reason: ChatDeleted, Message: "the chat was deleted"}})
	}
	return nil
}

// findTurn finds the turn in what the chat has.
func (s *Story) findTurn() {
	s.turn = s.chat.Turn(s.Message)
	s.begun = s.begun || s.turn.Committed
}

// message takes a committed message: the one that is answered, a step of the answer, or what ends it.
func (s *Story) message(m *stream.Message) error {
	switch {
	case !s.turn.Committed, m.Name == s.Message:
		return nil
	case s.turn.Next != nil:
		return s.End(s.superseded())
	case m.Role != v1beta1.RoleAssistant:
		return nil
	}
	s.blocks = append(s.blocks[:s.committed], s.blocksOf(m)...)
	s.committed = len(s.blocks)
	if s.JSON {
		s.text = answer(m)
	}
	return s.sync(true)
}

// step is the number of the newest reply.
func (s *Story) step() int { return len(s.turn.Replies) - 1 }

// blocksOf are the blocks of a reply.
func (s *Story) blocksOf(m *stream.Message) (blocks []Block) {
	step := s.step()
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Type == v1beta1.PartText && p.Text != nil && !s.JSON:
			blocks = grow(blocks, Text, *p.Text, step)
		case p.Type == v1beta1.PartReasoning && p.Text != nil:
			blocks = grow(blocks, Reasoning, *p.Text, step)
		case p.Type == v1beta1.PartToolCall && p.ToolCall.RequiresAction == v1beta1.RequiresClient:
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

// part takes a part of the running attempt. A call is sent once it is committed, since the client runs it at once.
// Nothing behind it is sent before.
func (s *Story) part(p *stream.MessagePart, isFirst bool) error {
	if !s.turn.Committed || p.Role != string(v1beta1.RoleAssistant) {
		return nil
	}
	if isFirst {
		s.blocks = s.blocks[:s.committed]
	}
	switch p.Part.Type {
	case parts.Text:
		if s.JSON {
			return nil
		}
		s.blocks = s.live(Text, p.Part.Text)
	case parts.Reasoning:
		s.blocks = s.live(Reasoning, p.Part.Text)
	case parts.ToolInput, parts.ToolCall:
		if slices.Contains(s.ClientTools, p.Part.Name) {
			s.blocks = append(s.blocks, Block{Kind: Call, Step: s.step() + 1})
		}
		return nil
	}
	return s.sync(false)
}

// live adds a piece of the running attempt. Blocks of committed steps do not grow.
func (s *Story) live(kind BlockKind, text string) []Block {
	return append(s.blocks[:s.committed], grow(s.blocks[s.committed:], kind, text, s.step()+1)...)
}

// status takes the status of the chat, which reports the end of the turn.
func (s *Story) status(before, now *stream.Status) error {
	if before == nil && now.Wait != nil || before != nil && !isSameWait(before.Wait, now.Wait) {
		if err := s.Send(Event{Kind: WaitChange, Wait: now.Wait}); err != nil {
			return err
		}
	}
	if s.hasLeft(now) {
		return s.End(End{Outcome: Failed, Error: &stream.Error{Reason: MessageDeleted, Message: "message " + s.Message +
			" is no longer part of the chat: it was deleted, or a message before it was deleted or edited"}})
	}
	if end := s.endOf(now); s.turn.Committed && end != nil {
		return s.End(*end)
	}
	return nil
}

// hasLeft reports whether the message was part of the history, and is not as of that status. A status follows all
// messages of a history.
func (s *Story) hasLeft(now *stream.Status) bool {
	wasCommitted := s.begun || s.Version > 0 && now.HistoryVersion >= s.Version
	return wasCommitted && !s.turn.Committed
}

// endOf is how a turn with that status ends; nil if it continues. If the turn failed, the next event contains the
// error.
func (s *Story) endOf(now *stream.Status) *End {
	switch s.turn.Result {
	case v1beta1.TurnAnswered, v1beta1.TurnMaxTokensReached, v1beta1.TurnRefused, v1beta1.TurnStoppedAfterTool:
		return &End{Outcome: Completed, Reply: s.reply()}
	case v1beta1.TurnMaxStepsReached:
		return &End{Outcome: Completed, Reply: v1beta1.ReplyMaxTokensReached}
	case v1beta1.TurnInterrupted:
		return &End{Outcome: Interrupted}
	}
	if s.turn.Held { // The client does not wait for a person.
		return &End{Outcome: Failed, Error: &stream.Error{Reason: v1beta1.ErrorReason(now.Reason), Message: now.Message}}
	}
	return nil
}

// isSameWait reports whether clients see no difference between two waits.
func isSameWait(a, b *v1beta1.ChatWait) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.For == b.For && a.Reason == b.Reason && a.Message == b.Message
}

// reply is how the newest reply ended; empty if there is none.
func (s *Story) reply() v1beta1.ReplyOutcome {
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

// failed takes the error of the turn. Those of earlier turns are ignored.
func (s *Story) failed(e *stream.Error) error {
	if !s.turn.Committed || s.turn.Result != v1beta1.TurnFailed {
		return nil
	}
	return s.End(End{Outcome: Failed, Error: e})
}

// action takes what the turn waits for. If only people must act, the client waits.
func (s *Story) action(a *stream.RequiresAction) error {
	ofClient := func(c v1beta1.PendingToolCall) bool { return c.Kind == v1beta1.RequiresClient }
	if !s.turn.Committed || !slices.ContainsFunc(a.ToolCalls, ofClient) {
		return nil
	}
	return s.End(End{Outcome: RequiresAction})
}

// superseded is how an answer ended if later messages follow it.
func (s *Story) superseded() End {
	if r := s.Ready; r != nil && r.Status == "False" && r.Reason == string(v1beta1.TurnInterrupted) {
		return End{Outcome: Interrupted}
	} else if r != nil && r.Status == "False" {
		return End{Outcome: Failed, Error: &stream.Error{Reason: v1beta1.ErrorReason(r.Reason), Message: r.Message}}
	}
	switch last := s.last(); {
	case last == nil, last.Outcome == v1beta1.OutcomeInterrupted:
		return End{Outcome: Interrupted}
	case s.hasCalls():
		return End{Outcome: RequiresAction}
	}
	return End{Outcome: Completed, Reply: s.reply()}
}

// hasCalls reports whether the newest step has calls for the client.
func (s *Story) hasCalls() bool {
	return slices.ContainsFunc(s.blocks[:s.committed], func(b Block) bool { return b.Kind == Call && b.Step == s.step() })
}

// End ends the answer. Blocks that were sent of a lost attempt stay.
func (s *Story) End(end End) error {
	end.Usage = s.turn.Usage
	if s.JSON && end.Outcome == Completed {
		s.blocks = grow(s.blocks[:s.committed], Text, s.text, s.step())
		s.committed = len(s.blocks)
		if err := s.sync(true); err != nil {
			return err
		}
	}
	if err := s.closeBlock(); err != nil {
		return err
	}
	if end.Outcome == Interrupted && len(s.sent) == 0 {
		end.Error = &stream.Error{Reason: TurnInterrupted, Message: "someone interrupted the turn before it had an answer: " +
			"make the request again, with another Idempotency-Key if it has one"}
	}
	s.over = true
	return s.Send(Event{Kind: AnswerEnd, End: &end})
}

// answer is the text of a reply; empty if it calls tools.
func answer(m *stream.Message) string {
	var b strings.Builder
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Type == v1beta1.PartToolCall:
			return ""
		case p.Type == v1beta1.PartText && p.Text != nil:
			b.WriteString(*p.Text)
		}
	}
	return b.String()
}
