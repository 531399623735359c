// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
)

func TestANameMayHaveItsType(t *testing.T) {
	for _, c := range []struct {
		use         string
		args        string
		want, wrong string
	}{
		{"show CHAT", "triage", "triage", ""},
		{"show CHAT", "chat/triage", "triage", ""},
		{"show CHAT", "chats/triage", "triage", ""},
		{"show CHAT", "chat.parley.dev/triage", "triage", ""},
		{"show CHAT", "Chats.v1alpha1.parley.dev/triage", "triage", ""},
		{"show CHAT", "chat.example.com/triage", "", `"chat.example.com/triage" names no chat: type its name, or chat/NAME`},
		{"show CHAT", "toolapproval.parley.dev/triage-x", "", "names no chat"},
		{"show CHAT", "chat/", "", "names no chat"},
		{"usage [CHAT]", "", "", ""},
		{"new [NAME [TEXT...]]", "chat/nightly- see a/b", "nightly- see a/b", ""},
		{"edit CHAT MESSAGE [TEXT...]", "chat/triage chatmessage.parley.dev/m a/b", "triage m a/b", ""},
		{"edit CHAT MESSAGE [TEXT...]", "triage chat/m", "", "names no chatmessage"},
		{"answer CHAT CALL=JSON [CALL=JSON...]", "chat/triage a/b=1", "triage a/b=1", ""},
	} {
		names, err := plainNames(c.use, strings.Fields(c.args))
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) || exitCode(err) != 2 {
				t.Errorf("%s with %q: error %v", c.use, c.args, err)
			}
			continue
		}
		if err != nil || !slices.Equal(names, strings.Fields(c.want)) {
			t.Errorf("%s with %q: got %v, %v", c.use, c.args, names, err)
		}
	}
}

func TestCallIsFoundByPartOfID(t *testing.T) {
	calls := []v1alpha1.PendingToolCall{{ID: "toolu_01A", Name: "a"}, {ID: "toolu_02B", Name: "b"},
		{ID: "toolu", Name: "c"}, {ID: "call_b2=x", Name: "d"}}
	for typed, c := range map[string]struct{ want, wrong string }{
		"toolu_02B": {"b", ""}, "toolu_01": {"a", ""}, "2B": {"b", ""}, "toolu": {"c", ""}, "2=x": {"d", ""},
		"nope": {"", ""}, "": {"", ""}, "toolu_0": {"", `"toolu_0" can be toolu_01A (a), toolu_02B (b): type more of the id`},
	} {
		call, err := findCall(calls, typed)
		switch {
		case c.wrong != "":
			if err == nil || err.Error() != c.wrong {
				t.Errorf("%q: error %v", typed, err)
			}
		case err != nil || (call == nil) != (c.want == "") || call != nil && call.Name != c.want:
			t.Errorf("%q: got %+v, %v", typed, call, err)
		}
	}
	for arg, c := range map[string]struct{ want, output string }{
		"toolu_01A={}": {"a", "{}"}, `2B={"a":"b=c"}`: {"b", `{"a":"b=c"}`}, "call_b2=x=1": {"d", "1"},
		"call_=1": {"d", "1"}, "2=x=1": {"d", "1"}, "other=1": {"", ""}, "=1": {"", ""}, "toolu_01A": {"", ""},
	} {
		call, output, err := callIn(calls, arg)
		if err != nil || output != c.output || (call == nil) != (c.want == "") || call != nil && call.Name != c.want {
			t.Errorf("%q: got %+v, %q, %v", arg, call, output, err)
		}
	}
}

func TestTheOnlyCallNeedsNoID(t *testing.T) {
	decision := &v1alpha1.ToolDecision{}
	for want, calls := range map[string][]v1alpha1.PendingToolCall{
		"b": {{ID: "1", Name: "a", Decision: decision}, {ID: "2", Name: "b"}},
		"every call of chat triage that requires approval is decided: 1 (a)": {{ID: "1", Name: "a", Decision: decision}},
		"chat triage has 2 calls that wait for approval: name one of 1 (a), 2 (b)": {{ID: "1", Name: "a"},
			{ID: "2", Name: "b"}},
	} {
		call, err := onlyUndecided("triage", calls)
		if call != nil && call.Name != want || err != nil && err.Error() != want {
			t.Errorf("got %+v, %v, want %s", call, err, want)
		}
	}
}

func TestWordsAreQuotedForTheShell(t *testing.T) {
	for word, want := range map[string]string{"call_1": "call_1", "a b": "'a b'", "it's": `'it'\''s'`, "": "''",
		"$x": "'$x'", "call_1=JSON": "call_1=JSON"} {
		if got := shellWord(word); got != want {
			t.Errorf("%q became %s", word, got)
		}
	}
}

func TestEachCallNeedsOneResultInJSON(t *testing.T) {
	calls := []v1alpha1.PendingToolCall{{ID: "call_1", Name: "open_ticket"}, {ID: "b=2", Name: "send_mail"}}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"both":    {[]string{`b=2={"to":"a=b"}`, `call_1=4711`}, ""},
		"one":     {[]string{`call_1=4711`}, "b=2 (send_mail) has no result yet"},
		"unknown": {[]string{`call_9=1`}, "give CALL=JSON for call_1 (open_ticket), b=2 (send_mail)"},
		"twice":   {[]string{`call_1=1`, `call_1=2`}, "call call_1 has two results"},
		"no JSON": {[]string{`call_1=done`}, `such as call_1='"done"'`},
	} {
		t.Run(name, func(t *testing.T) {
			parts, err := parseResults("triage", calls, c.args)
			if c.want == "" {
				if err != nil || len(parts) != 2 || parts[0].Output != "4711" ||
					parts[1].Output != `{"to":"a=b"}` {
					t.Errorf("got %+v, %v", parts, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}
