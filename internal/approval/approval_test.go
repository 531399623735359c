// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func command(text string) string {
	raw, err := json.Marshal(map[string]string{"command": text})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// Security (a tool that asks people): cannot hide a part of a call from whoever approves it, by length, whitespace,
// control characters, or text that is bidirectional or invisible. Also TestInputThatDoesNotFitIsNotShown of
// internal/approval; TestCallTooLargeToShowIsRefused of internal/generation/step.
func TestNothingOfAnInputIsHidden(t *testing.T) {
	for name, c := range map[string]struct{ raw, shown string }{
		"as it is":                 {`{"command":"ls -l","n":12345678901234567890}`, `{"command":"ls -l","n":12345678901234567890}`},
		"space between members":    {"{\"a\":1,\n\n\n   \"b\" : [ 2 ]}", `{"a":1,"b":[2]}`},
		"a member twice":           {`{"a":1,"a":2}`, `{"a":1,"a":2}`},
		"lines":                    {`{"a":"1\n2\t3\r"}`, `{"a":"1\n2\t3\r"}`},
		"a long run of lines":      {strings.Repeat("\n", 33) + "x", strings.Repeat(`\u000a`, 33) + "x"},
		"indentation":              {command("if x:\n        y"), `{"command":"if x:\n        y"}`},
		"a long run of spaces":     {command("a" + strings.Repeat(" ", 33) + "b"), `{"command":"a` + strings.Repeat(`\u0020`, 33) + `b"}`},
		"spaces of other kinds":    {command("a\u00a0b\u3000c\u2800d"), `{"command":"a\u00a0b\u3000c\u2800d"}`},
		"bidirectional text":       {command("rm \u202e fr-"), `{"command":"rm \u202e fr-"}`},
		"no width":                 {command("r\u200bm\ufeff"), `{"command":"r\u200bm\ufeff"}`},
		"variation selectors":      {command("a\ufe01\U000e0101 ❤\ufe0f"), `{"command":"a\ufe01\udb40\udd01 ❤` + "\ufe0f" + `"}`},
		"control characters":       {`{"a":"\u001b[2J"}`, `{"a":"\u001b[2J"}`},
		"letters that are escaped": {`{"\u0061":"\u0072m \\u0072 \"q\""}`, `{"a":"rm \\u0072 \"q\""}`},
		"no JSON":                  {"rm \u202e", `rm \u202e`},
		"nothing":                  {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Input(c.raw)
			if got != c.shown {
				t.Errorf("shown %s, want %s", got, c.shown)
			}
			var before, after any
			if json.Unmarshal([]byte(c.raw), &before) == nil &&
				(json.Unmarshal([]byte(got), &after) != nil || !reflect.DeepEqual(before, after)) {
				t.Errorf("%s is another value than %s", got, c.raw)
			}
		})
	}
}

func TestInputThatDoesNotFitIsNotShown(t *testing.T) {
	hidden := command("echo ls" + strings.Repeat(" ", 17000) + "; echo hidden > f")
	for name, c := range map[string]struct {
		raw  string
		fits bool
	}{
		"nothing":             {"", true},
		"just enough":         {command(strings.Repeat("a", v1beta1.MaxPendingInput-len(command("")))), true},
		"one byte more":       {command(strings.Repeat("a", v1beta1.MaxPendingInput-len(command(""))+1)), false},
		"spaces hide a part":  {hidden, false},
		"spaces of members":   {`{"a":1,` + strings.Repeat(" ", 20000) + `"b":2}`, true},
		"letters with escape": {command(strings.Repeat("\u202e", v1beta1.MaxPendingInput/6)), false},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "result", c.fits, Fits(c.raw))
			if shown := Input(c.raw); !c.fits && shown != "" {
				t.Errorf("a part is shown: %s", shown)
			}
		})
	}
}

// FuzzWhatIsShownIsWhatRuns decodes what people are shown of arguments that a tool would take.
func FuzzWhatIsShownIsWhatRuns(f *testing.F) {
	for _, seed := range []string{`{"a":"1\n2"}`, `{"a":"\u202e\ud83d\ude00","a":[1e400,-0.0]}`, "{\"a\":1,\n\t \"b\":null}",
		command(strings.Repeat("\t", 50))} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(raw), &object) != nil || object == nil || !Fits(raw) {
			return
		}
		shown := Input(raw)
		if decoded(t, shown) != decoded(t, raw) {
			t.Errorf("%q is shown as %s", raw, shown)
		}
		if strings.ContainsAny(shown, "\t\n\r\u00a0\u202e\u2800\ufeff") || strings.Contains(shown, strings.Repeat(" ", 33)) {
			t.Errorf("%q hides a part: %q", raw, shown)
		}
	})
}

// decoded is a value as a tool reads it, with all digits of its numbers.
func decoded(t *testing.T, raw string) string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return fmt.Sprintf("%q", value)
}

// The digest is documented, so that other clients can compute it: this one is by
// printf '12:current_time,18:{"timezone":"UTC"},0:,0:,' | sha256sum.
func TestDigestIsOfNetstrings(t *testing.T) {
	call := Of(&v1beta1.ToolCall{ID: "1", Name: "current_time", Input: `{"timezone": "UTC"}`,
		RequiresAction: v1beta1.RequiresApproval})
	const want = "sha256:03dbd3c7492b10c0aaeab4da520e37d4d107c106fd5e1004ade01eea7933c3c4"
	if call.Digest != want {
		t.Errorf("the digest is %s", call.Digest)
	}
	if client := Of(&v1beta1.ToolCall{Name: "x", RequiresAction: v1beta1.RequiresClient}); client.Digest != "" {
		t.Errorf("a call for a client has digest %s", client.Digest)
	}
}

// Security (a tool that asks people): cannot make another call run than the approved one, nor get the answer to one
// question for another one. Also TestDecisionAboutSomethingElseIsRefused of test/integration; TestOnlyApprovedInputRuns
// of internal/generation/step.
func TestDecisionAppliesOnlyToWhatWasSeen(t *testing.T) {
	first := OfQuestion(&v1beta1.ToolQuestion{ID: "1", Name: "book", Requests: `{"a":{"params":{"message":"Who?"}}}`})
	second := OfQuestion(&v1beta1.ToolQuestion{ID: "1", Name: "book", Requests: `{"a":{"params":{"message":"Your PIN?"}}}`})
	for name, c := range map[string]struct {
		decision v1beta1.ToolDecision
		applies  bool
	}{
		"approved as seen":      {v1beta1.ToolDecision{Decision: v1beta1.DecisionApprove, Digest: second.Digest}, true},
		"approved before":       {v1beta1.ToolDecision{Decision: v1beta1.DecisionApprove, Digest: first.Digest}, false},
		"approved unseen":       {v1beta1.ToolDecision{Decision: v1beta1.DecisionApprove}, false},
		"denied unseen":         {v1beta1.ToolDecision{Decision: v1beta1.DecisionDeny}, true},
		"denied something else": {v1beta1.ToolDecision{Decision: v1beta1.DecisionDeny, Digest: first.Digest}, false},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "result", c.applies, Applies(&c.decision, &second))
		})
	}
}

func TestQuestionsThatDoNotFitAreNotAsked(t *testing.T) {
	long := `{"a":{"params":{"message":"` + strings.Repeat("\u202e", v1beta1.MaxInputRequests/6) + `"}}}`
	for name, c := range map[string]struct {
		question v1beta1.ToolQuestion
		fits     bool
	}{
		"short":             {v1beta1.ToolQuestion{Requests: `{"a":{}}`}, true},
		"long when escaped": {v1beta1.ToolQuestion{Requests: long}, false},
		"no JSON":           {v1beta1.ToolQuestion{Requests: "{"}, false},
		"a long proposal":   {v1beta1.ToolQuestion{Proposal: strings.Repeat("a", v1beta1.MaxProposal+1)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "result", c.fits, QuestionFits(&c.question))
		})
	}
}
