// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/test/kit/check"
)

// sealed is a reasoning that OpenAI encrypted.
func sealed(id string) v1alpha1.MessagePart {
	return with(
		fmt.Sprintf(
			`{"parley":{"type":"parley.state","data":{"protocol":"Responses","item":{"type":"reasoning","id":%q,"summary":[],"encrypted_content":"+/%s=="}}}}`, id, id), reasoning(""))
}

// searched is what is kept of a search that OpenAI ran: it tells no result.
func searched(id string) []v1alpha1.MessagePart {
	return []v1alpha1.MessagePart{byProvider(callOf(id, "web_search", `{"query":"x"}`)), byProvider(result(id, ""))}
}

func TestReasoningIsSentBackOnlyWithWhatItLedTo(t *testing.T) {
	join := func(parts ...[]v1alpha1.MessagePart) (all []v1alpha1.MessagePart) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	one := func(p ...v1alpha1.MessagePart) []v1alpha1.MessagePart { return p }
	for name, c := range map[string]struct {
		reply []v1alpha1.MessagePart
		sent  string
	}{
		"a search": {join(one(sealed("rs_1")), searched("ws_1"), one(sealed("rs_2"), text("It is y."))),
			"rs_2"},
		"two searches": {join(one(sealed("rs_1")), searched("ws_1"), one(sealed("rs_2")), searched("ws_2"),
			one(sealed("rs_3"), text("It is y."))), "rs_3"},
		"no reasoning between": {join(one(sealed("rs_1")), searched("ws_1"), searched("ws_2"), one(text("It is y."))), ""},
		"a call before a search": {join(one(sealed("rs_1"), call("call_1", "{}"), sealed("rs_2")), searched("ws_1")),
			"rs_1"},
		"a search of no result": {one(sealed("rs_1"), byProvider(callOf("ws_1", "web_search", "{}")), sealed("rs_2"),
			text("It is y.")), "rs_2"},
		"nothing but a reasoning": {one(sealed("rs_1"), text("It is y.")), "rs_1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t, wires["openai-responses"])
			in := prompt.Input{History: []v1alpha1.ChatMessage{user("q"),
				by(v1alpha1.ProviderOpenAI, "gpt", assistant(c.reply...)), user("r")}}
			if err := w.send(t, in); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"rs_1", "rs_2", "rs_3"} {
				check.Equal(t, id, id == c.sent, strings.Contains(string(w.sent), `"`+id+`"`))
			}
		})
	}
}
