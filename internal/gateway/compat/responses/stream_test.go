// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	api "github.com/openai/openai-go/v3/responses"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/responses"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/test/kit/check"
)

var update = flag.Bool("update", false, "write what is sent into the golden files")

// sent is an event as it is sent.
type sent struct {
	name string
	data string
}

// recorder keeps what a stream sends.
type recorder struct{ events []sent }

func (r *recorder) send(name string, data []byte) error {
	r.events = append(r.events, sent{name, string(data)})
	return nil
}

func answer() *wire.Answer {
	return &wire.Answer{Namespace: "demo", Chat: "chat-x", Message: "chat-x-1", Model: "large",
		Created: time.Unix(1_790_000_000, 0)}
}

// blocks of an answer that has all kinds of them.
var blocks = []turn.Block{{Kind: turn.Reasoning, Text: "Somebody asks."},
	{Kind: turn.Text, Text: "Ich schaue für dich nach."},
	{Kind: turn.Call, ID: "call_1", Name: "weather", Text: `{"city":"Rome"}`}}

var calls = turn.End{Outcome: turn.RequiresAction, Usage: v1beta1.TokenUsage{InputTokens: 5, CacheReadTokens: 4,
	OutputTokens: 3, ReasoningTokens: 2}}

// tell streams the blocks in the pieces into which cut divides a text.
func tell(t *testing.T, after int64, cut func(string) []string, end turn.End) *recorder {
	t.Helper()
	r := &recorder{}
	s := responses.NewStream(answer(), after, r.send)
	check.OK(t, s.Begin())
	for i := range blocks {
		b := &blocks[i]
		check.OK(t, s.Send(turn.Event{Kind: turn.BlockStart, Block: b, Index: i}))
		for _, piece := range cut(b.Text) {
			check.OK(t, s.Send(turn.Event{Kind: turn.BlockDelta, Block: b, Index: i, Text: piece}))
		}
		check.OK(t, s.Send(turn.Event{Kind: turn.BlockEnd, Block: b, Index: i}))
	}
	check.OK(t, s.Send(turn.Event{Kind: turn.AnswerEnd, End: &end}))
	return r
}

func whole(text string) []string { return []string{text} }

func words(text string) []string { return strings.SplitAfter(text, " ") }

// TestWhatIsStreamed holds the events as golden files, and that OpenAI's client reads them; -update writes them.
func TestWhatIsStreamed(t *testing.T) {
	for name, end := range map[string]turn.End{
		"calls":       calls,
		"completed":   {Outcome: turn.Completed, Reply: v1beta1.ReplyComplete},
		"length":      {Outcome: turn.Completed, Reply: v1beta1.ReplyMaxTokensReached},
		"interrupted": {Outcome: turn.Interrupted},
		"failed": {Outcome: turn.Failed, Error: &stream.Error{Reason: v1beta1.ErrorContextTooLong,
			Message: "It is too long."}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			for _, e := range tell(t, responses.FromStart, words, end).events {
				var read api.ResponseStreamEventUnion
				if err := json.Unmarshal([]byte(e.data), &read); err != nil || read.AsAny() == nil || read.Type != e.name {
					t.Errorf("OpenAI's client reads %s as %v, %v", e.data, read.AsAny(), err)
				}
				fmt.Fprintf(&out, "event: %s\ndata: %s\n\n", e.name, e.data)
			}
			golden(t, name+".txt", out.Bytes())
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		check.OK(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	check.OK(t, err)
	check.Equal(t, name, string(want), string(got))
}

// event is what a client reads of one.
type event struct {
	Type   string `json:"type"`
	Number int64  `json:"sequence_number"`
	Delta  string `json:"delta"`
}

func read(t *testing.T, r *recorder) (events []event) {
	t.Helper()
	for _, s := range r.events {
		var e event
		check.OK(t, json.Unmarshal([]byte(s.data), &e))
		events = append(events, e)
	}
	return events
}

// joined are events with the deltas that follow each other as one, which has the number of the last.
func joined(events []event) (out []event) {
	for _, e := range events {
		if n := len(out); n > 0 && out[n-1].Delta != "" && e.Delta != "" {
			out[n-1].Delta += e.Delta
			out[n-1].Number = e.Number
			continue
		}
		out = append(out, e)
	}
	return out
}

func TestAnyGatewayResumesStreamWithoutLossOrDuplicates(t *testing.T) {
	all := joined(read(t, tell(t, responses.FromStart, whole, calls)))
	live := read(t, tell(t, responses.FromStart, words, calls))
	for i, last := range live {
		rest := read(t, tell(t, last.Number, whole, calls))
		got := joined(append(append([]event{}, live[:i+1]...), rest...))
		check.Equal(t, fmt.Sprintf("behind event %d", last.Number), all, got)
	}
}

func TestResumeOffsetInsideRuneKeepsWholeRune(t *testing.T) {
	for range 20 {
		after := rand.Int64N(120)
		for _, e := range read(t, tell(t, after, whole, calls)) {
			if strings.ContainsRune(e.Delta, '\uFFFD') || e.Number <= after {
				t.Errorf("behind %d comes %+v", after, e)
			}
		}
	}
}

func TestAResponseIsRetrievedAsItWasStreamed(t *testing.T) {
	a := answer()
	a.Blocks, a.End, a.Begun = blocks, &calls, true
	raw, err := json.Marshal(responses.Of(a))
	check.OK(t, err)
	var retrieved api.Response
	check.OK(t, json.Unmarshal(raw, &retrieved))
	streamed := tell(t, responses.FromStart, words, calls).events
	var last struct {
		Response json.RawMessage `json:"response"`
	}
	check.OK(t, json.Unmarshal([]byte(streamed[len(streamed)-1].data), &last))
	check.Equal(t, "the last event", string(last.Response), string(raw))
	if retrieved.Status != "completed" || retrieved.OutputText() != blocks[1].Text ||
		retrieved.Output[2].AsFunctionCall().CallID != "call_1_chat-x" || retrieved.Usage.InputTokens != 9 {
		t.Errorf("OpenAI's client reads %s", raw)
	}
}
