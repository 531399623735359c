// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/test/kit/chattest"
)

const hostile = "\x1b]0;owned\a \u009b2J rm \u202e-fr \u200b\u2028now"

// Security (a hostile sub-chat): cannot control a terminal by its title, its reply or its error, wherever people see
// them. Also TestForeignTextNeitherControlsNorImitates of internal/cli/render.
func TestStatusHoldsNoTerminalControls(t *testing.T) {
	check := func(w *world, what string) {
		t.Helper()
		raw, err := json.Marshal([]any{w.chat.Status, w.last.Notices})
		if err != nil {
			t.Fatal(err)
		}
		var texts any
		if err := json.Unmarshal(raw, &texts); err != nil {
			t.Fatal(err)
		}
		walk(texts, func(text string) {
			if printable.Escape(text) != text || strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("%s: the status says %q", what, text)
			}
		})
	}
	w := newWorld(t)
	w.chat.Spec.Title = hostile
	check(w.pass(nil), "a title that a person gave")
	w.chat.Spec.Title = ""
	w.say("a").answer(chattest.Says(hostile), chattest.Titles(hostile, v1beta1.TitleFromModel))
	check(w, "a reply with a title")
	if st := w.chat.Status; st.LastReply != "]0;owned 2J rm -fr now" || st.Title != st.LastReply {
		t.Errorf("the reply is %q and the title %q", st.LastReply, st.Title)
	}
	for _, retryable := range []bool{true, false} {
		w = newWorld(t).say("a").answer(chattest.Fails(v1beta1.ErrorOverloaded, func(e *v1beta1.GenerationError) {
			e.Message, e.Advice, e.Provider, e.Retryable = hostile, hostile, hostile, retryable
		}))
		check(w, "an error")
	}
	w = summarized(t).say("a").answer(chattest.Says("hi"))
	w.pass(func(f *Facts) { f.Summary = w.summary(hostile, w.chat.Status.History.Version, nil) })
	check(w.wantSummary("]0;owned 2J rm -fr now", v1beta1.TurnSummaryFromModel), "a summary of a turn")
}

// walk calls each with every text.
func walk(v any, each func(string)) {
	switch v := v.(type) {
	case string:
		each(v)
	case []any:
		for _, item := range v {
			walk(item, each)
		}
	case map[string]any:
		for _, item := range v {
			walk(item, each)
		}
	}
}
