// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/test/kit/check"
)

func event(name, data string, args ...any) stream.Event {
	return stream.Event{Name: name, Data: fmt.Appendf(nil, data, args...)}
}

// user is a message of a person, and reply one of the model, with the version of its commit as its place and name.
func user(version int, name string) stream.Event {
	return event("message", `{"historyVersion":%d,"index":%d,"message":{"name":%q,"role":"User","content":"Hi."}}`,
		version, version-1, name)
}

func reply(version int, name, more string) stream.Event {
	return event("message", `{"historyVersion":%d,"index":%d,"message":{"name":%q,"role":"Assistant","attempt":1,`+
		`"usage":{"outputTokens":2},"replyOutcome":"Complete","parts":[{"type":"Text","text":"Hello."}]%s}}`, version,
		version-1, name, more)
}

func piece(version, attempt int, part string) stream.Event {
	return event("message_part", `{"historyVersion":%d,"attempt":%d,"seq":1,"role":"Assistant","part":{%s}}`, version,
		attempt, part)
}

func status(version, length int, turn, more string) stream.Event {
	return event("status", `{"historyVersion":%d,"length":%d,"turn":%q%s}`, version, length, turn, more)
}

var (
	running   = status(1, 1, "q", `,"phase":"Running","ready":"Unknown","attempt":1`)
	answered  = status(2, 2, "q", `,"phase":"Waiting","ready":"True","result":"Answered"`)
	failed    = status(1, 1, "q", `,"phase":"Error","ready":"False","result":"Failed"`)
	overdrawn = status(1, 1, "q", `,"phase":"Running","ready":"False","reason":"BudgetReached"`)
	asking    = status(2, 2, "q", `,"phase":"RequiresAction","ready":"Unknown"`)
	reset     = event("history_reset", `{}`)
	hello     = piece(1, 1, `"type":"Text","text":"Hel"`)
)

// outline is what a transcript holds, a word for each thing.
func outline(t *client.Transcript) string {
	var words []string
	for _, m := range t.Messages {
		words = append(words, fmt.Sprintf("%s@%d", m.Message.Name, m.HistoryVersion))
	}
	for _, uid := range slices.Sorted(maps.Keys(t.Notes)) {
		words = append(words, fmt.Sprintf("note:%s@%d", uid, t.Notes[uid].Generation))
	}
	if t.Live != nil {
		words = append(words, fmt.Sprintf("live:%q", t.Live.Text()))
	}
	for _, q := range t.Queue {
		words = append(words, "queue:"+q.Name)
	}
	for word, is := range map[string]bool{"action": t.Action != nil, "retry": t.Retry != nil, "error": t.Error != nil,
		"deleted": t.Deleted} {
		if is {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

func applied(t *testing.T, events ...stream.Event) *client.Transcript {
	t.Helper()
	var transcript client.Transcript
	for _, e := range events {
		check.OK(t, transcript.Apply(e))
	}
	return &transcript
}

func TestATranscriptIsWhatTheStreamHasTold(t *testing.T) {
	action := event("requires_action", `{"historyVersion":2}`)
	retry := event("retry", `{"historyVersion":1,"attempt":1}`)
	note := func(uid string, generation int) stream.Event {
		return event("note", `{"generation":%d,"message":{"uid":%q,"content":"Mind."}}`, generation, uid)
	}
	for name, c := range map[string]struct {
		events []stream.Event
		want   string
	}{
		"nothing":                   {nil, ""},
		"a reply that comes":        {[]stream.Event{user(1, "q"), running, hello}, `q@1 live:"Hel"`},
		"a reply that is committed": {[]stream.Event{user(1, "q"), hello, reply(2, "a", "")}, "q@1 a@2"},
		"another attempt": {[]stream.Event{hello, piece(1, 2, `"type":"Text","text":"Hi"`)},
			`live:"Hi"`},
		"a void attempt":                   {[]stream.Event{hello, event("preview_reset", `{"historyVersion":1}`)}, ""},
		"an attempt that failed":           {[]stream.Event{running, retry}, "retry"},
		"the attempt after it":             {[]stream.Event{running, retry, piece(1, 2, `"type":"Source"`)}, `live:""`},
		"a status of the attempt after it": {[]stream.Event{running, retry, status(1, 1, "q", `,"attempt":2`)}, ""},
		"a turn that failed":               {[]stream.Event{failed, event("error", `{"historyVersion":1}`)}, "error"},
		"a turn after it": {[]stream.Event{failed, event("error", `{"historyVersion":1}`), answered},
			""},
		"calls that wait": {[]stream.Event{asking, action}, "action"},
		"calls that waited": {[]stream.Event{asking, action, status(2, 2, "q", `,"phase":"Running"`)},
			""},
		"messages that wait": {[]stream.Event{event("queue_update", `{"queue":[{"name":"n"}]}`)},
			"queue:n"},
		"notes": {[]stream.Event{note("a", 1), note("b", 1), note("a", 2)},
			"note:a@2 note:b@1"},
		"a note that is gone":          {[]stream.Event{note("a", 1), event("note_deleted", `{"uid":"a"}`)}, ""},
		"a chat that is gone":          {[]stream.Event{user(1, "q"), event("deleted", `{}`)}, "q@1 deleted"},
		"events of a later version":    {[]stream.Event{user(1, "q"), event("mood", `{}`)}, "q@1"},
		"a history that is told again": {[]stream.Event{user(1, "q"), hello, reset, user(1, "q")}, "q@1"},
		"notes that are not told with it": {[]stream.Event{note("a", 1), note("b", 1), reset, note("b", 1), running},
			"note:b@1"},
		"a stream that begins in the middle": {[]stream.Event{status(6, 6, "q", ""), user(7, "r")}, "r@7"},
		"what another turn leaves of an error": {[]stream.Event{failed, event("error", `{"historyVersion":1}`), running},
			""},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "outline", c.want, outline(applied(t, c.events...)))
		})
	}
}

func TestPiecesOfAPartAreOne(t *testing.T) {
	live := applied(t, piece(1, 1, `"type":"Reasoning","text":"Hm"`), piece(1, 1, `"type":"Text","text":"Hel"`),
		piece(1, 1, `"type":"Text","text":"l"`), piece(1, 1, `"type":"ToolCall","id":"1","name":"execute","text":"{}"`),
		piece(1, 1, `"type":"Text","text":"o"`)).Live
	if live.Text() != "Hello" || len(live.Parts) != 3 || !live.Previews(1, 1) || live.Previews(1, 2) {
		t.Errorf("they are %+v", live)
	}
	if !live.Has(parts.ToolCall, "1") || live.Has(parts.ToolCall, "2") || !live.Has(parts.ToolCall, "") {
		t.Error("the call is not found by its id")
	}
	if none := (*client.Live)(nil); none.Text() != "" || none.Has(parts.Text, "") || none.Previews(0, 0) {
		t.Error("no attempt has parts")
	}
}

func TestAnOutlineHasNoTexts(t *testing.T) {
	transcript := client.Transcript{Outline: true}
	for _, e := range []stream.Event{user(1, "q"), hello, hello} {
		check.OK(t, transcript.Apply(e))
	}
	if transcript.Messages[0].Message.Content != "" || transcript.Live.Text() != "" || len(transcript.Live.Parts) != 1 {
		t.Errorf("it has %+v", transcript)
	}
}

func TestAnEventThatCannotBeReadFails(t *testing.T) {
	var transcript client.Transcript
	if err := transcript.Apply(event("message", `[`)); err == nil || outline(&transcript) != "" {
		t.Errorf("it is %q: %v", outline(&transcript), err)
	}
}

func TestATurnIsKnownByItsMessage(t *testing.T) {
	for name, c := range map[string]struct {
		events []stream.Event
		want   client.Turn
	}{
		"not yet": {[]stream.Event{status(1, 1, "before", `,"ready":"True","result":"Answered"`)},
			client.Turn{}},
		"just committed": {[]stream.Event{status(1, 1, "before", `,"ready":"True"`), user(2, "q")},
			client.Turn{Committed: true, Begun: true}},
		"named by a status": {[]stream.Event{running}, client.Turn{Begun: true}},
		"under way":         {[]stream.Event{user(1, "q"), running}, client.Turn{Committed: true, Begun: true}},
		"held": {[]stream.Event{user(1, "q"), overdrawn},
			client.Turn{Committed: true, Begun: true, Held: true, Ended: true}},
		"failed": {[]stream.Event{user(1, "q"), failed},
			client.Turn{Committed: true, Begun: true, Ended: true, Result: v1beta1.TurnFailed}},
		"another turn's": {[]stream.Event{running, status(4, 4, "r", `,"ready":"Unknown"`)},
			client.Turn{Begun: true, Ended: true}},
		"edited and not told": {[]stream.Event{user(1, "q"), answered, reset, user(3, "q")},
			client.Turn{Committed: true, Begun: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, applied(t, c.events...).Turn("q")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTurnBehindResultsOfAClientEnds(t *testing.T) {
	results := func(version int) stream.Event {
		return event("message", `{"historyVersion":%d,"index":%d,"message":{"name":"t","role":"Tool"}}`, version, version-1)
	}
	asked := []stream.Event{user(1, "q"), reply(2, "a", ""), asking, results(3)}
	if turn := applied(t, asked...).Turn("t"); turn.Ended || turn.Result != "" {
		t.Errorf("before a status tells of it, it is %+v", turn)
	}
	ended := append(asked, reply(4, "b", ""), status(4, 4, "q", `,"ready":"True","result":"Answered"`))
	turn := applied(t, ended...).Turn("t")
	if !turn.Ended || turn.Result != v1beta1.TurnAnswered || len(turn.Replies) != 1 {
		t.Errorf("it is %+v", turn)
	}
	next := append(ended, user(5, "r"), status(5, 5, "r", `,"ready":"False","result":"Failed"`))
	if turn := applied(t, next...).Turn("t"); turn.Next == nil || turn.Result != "" {
		t.Errorf("with the next turn it is %+v", turn)
	}
}

func TestATurnHasItsRepliesAndWhatFollows(t *testing.T) {
	transcript := applied(t, user(1, "before"), reply(2, "b", ""), user(3, "q"), reply(4, "a", ""),
		event("message", `{"historyVersion":5,"index":4,"message":{"name":"t","role":"Tool","attempt":1}}`),
		reply(6, "c", ""), user(7, "next"), reply(8, "d", ""))
	turn := transcript.Turn("q")
	if len(turn.Replies) != 2 || turn.Replies[1].Name != "c" || turn.Usage.OutputTokens != 4 {
		t.Errorf("its replies are %+v", turn)
	}
	if turn.Next == nil || turn.Next.Name != "next" || !turn.Ended {
		t.Errorf("what follows is %+v", turn.Next)
	}
}

func TestUpdatesOfAResetAreWhatChanged(t *testing.T) {
	before := []stream.Event{user(1, "q"), reply(2, "a", ""), user(3, "r"), reply(4, "b", ""), status(4, 4, "r", "")}
	for name, c := range map[string]struct {
		events  []stream.Event
		updates int
		reset   *client.Reset
		want    string
	}{
		"nothing": {before, 1, nil, "q@1 a@2 r@3 b@4"},
		"an edit": {[]stream.Event{user(1, "q"), reply(2, "a", ""),
			event("message", `{"historyVersion":5,"index":2,"message":{"name":"r","role":"User"}}`), status(5, 3, "r", "")}, 3,
			&client.Reset{From: 2, Length: 4, More: true}, "q@1 a@2 r@5"},
		"a deletion": {[]stream.Event{user(1, "q"), status(5, 1, "q", "")}, 2, &client.Reset{From: 1, Length: 4}, "q@1"},
		"another chat": {[]stream.Event{user(1, "x"), status(1, 1, "x", "")}, 3,
			&client.Reset{Other: true, Length: 4, More: true}, "x@1"},
	} {
		t.Run(name, func(t *testing.T) {
			transcript := applied(t, before...)
			var last []client.Update
			for _, e := range append([]stream.Event{reset}, c.events...) {
				updates, err := transcript.Updates(e)
				check.OK(t, err)
				for _, u := range updates {
					transcript.Take(u)
				}
				if e.Name != stream.EventStatus && len(updates) > 0 {
					t.Errorf("%s is told before the history is whole", e.Name)
				}
				last = updates
			}
			got, _ := last[0].(*client.Reset)
			if diff := cmp.Diff(c.reset, got); diff != "" || len(last) != c.updates || outline(transcript) != c.want {
				t.Errorf("it is %q after %d updates: %s", outline(transcript), len(last), diff)
			}
		})
	}
}
