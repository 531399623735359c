// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/test/kit/check"
)

// at is a message at its place, with the version of its commit.
func at(index, version int, role, text string) stream.Event {
	return stream.Event{Name: "message",
		Data: fmt.Appendf(nil,
			`{"historyVersion":%d,"index":%d,"message":{"name":"m","role":%q,"attempt":1,"parts":[{"type":"Text","text":%q}]}}`,
			version, index, role, text)}
}

func stands(version, length int, turn, rest string) stream.Event {
	return stream.Event{Name: "status", Data: fmt.Appendf(nil, `{"historyVersion":%d,"length":%d,"turn":%q%s}`, version,
		length,
		turn, rest)}
}

var reset = stream.Event{Name: "history_reset", Data: []byte(`{}`)}

// talk is a conversation of four messages.
var talk = events{at(0, 1, "User", "one"), at(1, 2, "Assistant", "ONE"), at(2, 3, "User", "two"),
	at(3, 4, "Assistant", "TWO"), stands(4, 4, "two", "")}

// read shows events as tail does.
func read(t *testing.T, story ...stream.Event) (out, notes string) {
	t.Helper()
	var shown, noted strings.Builder
	p := NewPrinter(&shown, &noted, false, hints)
	for _, e := range story {
		check.OK(t, p.Event(e, true))
	}
	return shown.String(), noted.String()
}

func TestAResetTellsOnlyWhatHasChanged(t *testing.T) {
	for name, c := range map[string]struct {
		events []stream.Event
		want   string
		note   string
	}{
		"an edit": {
			events: events{at(0, 1, "User", "one"), at(1, 2, "Assistant", "ONE"), at(2, 5, "User", "2"),
				stands(5, 3, "two", "")},
			want: "▎> 2\n", note: "▎[the conversation was changed from message 3 on; it continues like this:]\n",
		},
		"an edit that was answered": {
			events: events{at(0, 5, "User", "1"), at(1, 6, "Assistant", "I"), stands(6, 2, "one", "")},
			want:   "▎> 1\nI\n", note: "▎[the conversation was changed from message 1 on; it continues like this:]\n",
		},
		"a deleted reply": {events{at(0, 1, "User", "one"), at(1, 2, "Assistant", "ONE"), at(2, 3, "User", "two"),
			stands(5, 3, "two", "")}, "", "▎[message 4 was deleted]\n"},
		"deleted messages": {events{at(0, 1, "User", "one"), stands(5, 1, "one", "")}, "",
			"▎[messages 2 to 4 were deleted]\n"},
		"everything":        {events{stands(5, 0, "", "")}, "", "▎[messages 1 to 4 were deleted]\n"},
		"nothing that left": {append(talk[:4:4], at(4, 5, "User", "three"), stands(5, 5, "three", "")), "▎> three\n", ""},
		"another chat": {
			events{at(0, 1, "User", "hello"), stands(1, 1, "hello", "")}, "▎> hello\n",
			"▎[another chat of this name has begun]\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, notes := read(t, append(append(talk[:5:5], reset), c.events...)...)
			if want := "▎> one\nONE\n▎> two\nTWO\n" + c.want; out != want || notes != c.note {
				t.Errorf("shown %q, want %q; noted %q, want %q", out, want, notes, c.note)
			}
			out, notes = read(t, append(events{talk[4], reset}, c.events...)...)
			if out != c.want || notes != c.note {
				t.Errorf("from now on, shown %q, want %q; noted %q, want %q", out, c.want, notes, c.note)
			}
		})
	}
}

func TestResetEndsTheLineOfAVoidText(t *testing.T) {
	out, notes := read(t, stands(1, 1, "one", ""), text(1, "Hel"), reset, at(0, 2, "User", "uno"), stands(2, 1, "one", ""),
		text(2, "Salve"), at(1, 3, "Assistant", "Salve"), stands(3, 2, "one", ""))
	if out != "Hel\n▎> uno\nSalve\n" || !strings.Contains(notes, "changed from message 1 on") {
		t.Errorf("shown %q, noted %q", out, notes)
	}
}

func TestAnInterruptionIsNotedOnce(t *testing.T) {
	running, stopping := stands(1, 1, "one", `,"phase":"Running"`), stands(1, 1, "one", `,"phase":"Interrupting"`)
	ended := func(version, length int) stream.Event {
		return stands(version, length, "one", `,"phase":"Waiting","result":"Interrupted"`)
	}
	partial := stream.Event{Name: "message",
		Data: []byte(
			`{"historyVersion":2,"index":1,"message":{"name":"m","role":"Assistant","attempt":1,"outcome":"Interrupted","parts":[{"type":"Text","text":"Hel"}]}}`)}
	for name, c := range map[string]struct {
		events      []stream.Event
		want, notes string
	}{
		"something was said": {events{running, text(1, "Hel"), stopping, partial, ended(2, 2)}, "Hel\n",
			"▎[interrupted]\n"},
		"nothing was said": {events{running, stopping, ended(2, 1)}, "", "▎[interrupted]\n"},
		"nothing was kept": {events{running, text(1, "Hel"), stopping, {Name: "preview_reset", Data: []byte(`{}`)},
			ended(2, 1)}, "Hel\n", "▎[interrupted; nothing of this was kept]\n"},
		"it was before we came": {events{ended(2, 1), stands(3, 1, "one", `,"phase":"Waiting","result":"Interrupted"`)}, "",
			""},
	} {
		t.Run(name, func(t *testing.T) {
			if out, notes := read(t, c.events...); out != c.want || notes != c.notes {
				t.Errorf("shown %q, noted %q", out, notes)
			}
		})
	}
}

func TestARequiredActionSaysWhatToType(t *testing.T) {
	action := func(version int, calls string) stream.Event {
		return stream.Event{Name: "requires_action",
			Data: fmt.Appendf(nil, `{"historyVersion":%d,"deadline":"2027-01-15T08:00:00Z","toolCalls":[%s]}`, version, calls)}
	}
	until := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC).Local().Format(time.DateTime)
	const (
		ticket = `{"id":"call_1","name":"open_ticket","kind":"Client"}`
		mail   = `{"id":"call_3","name":"send_mail","kind":"Client"}`
		clock  = `{"id":"call_2","name":"current_time","kind":"Approval","input":"{}","digest":"sha256:0123456789abcdef"}`
		done   = `{"id":"call_2","name":"current_time","kind":"Approval","decision":{"id":"call_2","decision":"Approve","approval":"a"}}`
	)
	for name, c := range map[string]struct {
		events []stream.Event
		want   string
	}{
		"a client's calls": {events{action(2, ticket+","+mail)}, "▎[the chat waits for you until " + until +
			"]\n▎  call_1 (open_ticket) needs a result\n▎  call_3 (send_mail) needs a result\n▎    kubectl chat answer " +
			"triage call_1=JSON call_3=JSON\n"},
		"a call to approve": {events{action(2, clock)}, "▎[the chat waits for you until " + until +
			"]\n▎  call_2 (current_time) needs approval\n▎      | {}\n▎    kubectl chat approve triage call_2 --digest " +
			"0123456789ab\n▎    kubectl chat deny triage call_2\n"},
		"nothing new": {events{action(2, clock), action(2, clock)}, "▎[the chat waits for you until " + until +
			"]\n▎  call_2 (current_time) needs approval\n▎      | {}\n▎    kubectl chat approve triage call_2 --digest " +
			"0123456789ab\n▎    kubectl chat deny triage call_2\n"},
		"all is decided": {events{action(2, done)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if out, notes := read(t, c.events...); out != "" || notes != c.want {
				t.Errorf("shown %q, noted %q", out, notes)
			}
		})
	}
}

func TestReplyThatWasCutIsNoted(t *testing.T) {
	_, notes := read(t, at(0, 1, "User", "one"), stream.Event{Name: "message", Data: []byte(`{"historyVersion":2,"index":1,` +
		`"message":{"name":"m","role":"Assistant","attempt":1,"replyOutcome":"MaxTokensReached","finishReason":"max_tokens",` +
		`"parts":[{"type":"Text","text":"Hel"}]}}`)})
	if want := "▎[The reply was cut: it reached its limit of output tokens (finish reason max_tokens)]\n"; notes != want {
		t.Errorf("noted %q", notes)
	}
}

func TestResultsSayWhoDecided(t *testing.T) {
	results := stream.Event{Name: "message", Data: []byte(`{"historyVersion":3,"index":2,"message":{"name":"m","role":"Tool",` +
		`"attempt":1,"decisions":[{"id":"call_1","decision":"Deny","approval":"a","by":"anna","comment":"not today"}],` +
		`"parts":[{"type":"ToolResult","toolResult":{"id":"call_1","name":"execute","output":"no","isError":true}}]}}`)}
	out, _ := read(t, at(0, 1, "User", "one"), at(1, 2, "Assistant", "ONE"), results)
	if want := "▎[execute was denied by anna: not today]\n"; !strings.Contains(out, want) {
		t.Errorf("shown %q", out)
	}
}

func TestWhatTheChatWaitsForIsShownOnce(t *testing.T) {
	waits := func(version int, message string) stream.Event {
		return stands(version, 1, "one", `,"wait":{"for":"Capacity","reason":"WaitingForCapacity","message":"`+message+`"},`+
			`"warnings":[{"type":"Truncated","reason":"ReplyTooLarge","message":"cut"}]`)
	}
	_, notes := read(t, at(0, 1, "User", "one"), waits(1, "a"), waits(1, "a"), waits(1, "b"), stands(1, 1, "one", ""),
		waits(1, "b"))
	const want = "▎[WaitingForCapacity: a]\n▎[Truncated: ReplyTooLarge: cut]\n▎[WaitingForCapacity: b]\n" +
		"▎[WaitingForCapacity: b]\n"
	check.Equal(t, "noted", want, notes)
}

func TestWaitIsNotShownWithinAReply(t *testing.T) {
	late := stands(1, 1, "one", `,"wait":{"for":"Pod","reason":"WaitingForPod","message":"starting"}`)
	out, notes := read(t, at(0, 1, "User", "one"), text(1, "Hel"), late, text(1, "lo"), at(1, 2, "Assistant", "Hello"))
	if out != "▎> one\nHello\n" || notes != "" {
		t.Errorf("shown %q, noted %q", out, notes)
	}
}

func noteEvent(uid string, index, generation int64) stream.Event {
	return stream.Event{Name: "note", Data: fmt.Appendf(nil,
		`{"index":%d,"generation":%d,"message":{"name":%q,"uid":%q,"content":"note %s","createdBy":"anna"}}`, index,
		generation,
		uid, uid, uid)}
}

func TestResumedStreamRepeatsNoNote(t *testing.T) {
	var out, errOut strings.Builder
	p := NewPrinter(&out, &errOut, false, hints)
	p.NotesFrom = -1 // From now on.
	for _, e := range []stream.Event{
		{Name: "status", Data: []byte(`{"length":4}`)},
		noteEvent("new", 4, 1),
		// The stream is lost here.
		noteEvent("old", 2, 1), noteEvent("new", 4, 1), noteEvent("newer", 6, 1),
		noteEvent("new", 4, 2),
		{Name: "note_deleted", Data: []byte(`{"name":"new","uid":"new"}`)},
	} {
		check.OK(t, p.Event(e, true))
	}
	want := "▎[note of anna:]\n▎  note new\n▎[note of anna:]\n▎  note newer\n▎[note of anna, changed:]\n▎  note new\n"
	if out.String() != want || errOut.String() != "▎[note new was deleted]\n" {
		t.Errorf("it shows %q, %q", out.String(), errOut.String())
	}
}

func TestWhatIsNamedIsNoFormat(t *testing.T) {
	var out bytes.Buffer
	o := &Output{IOStreams: genericiooptions.IOStreams{Out: &out}}
	err := o.Say("chat.parley.dev/100%d", nil, " %s", "50%s")
	if err != nil || out.String() != "chat.parley.dev/100%d 50%s\n" {
		t.Errorf("it says %q: %v", out.String(), err)
	}
}
