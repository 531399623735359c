// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"net/http"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

// sealed is a turn whose reply had an encrypted reasoning.
func sealed(call *fantasy.Call) {
	state := wire.State{Item: []byte(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm <b>"}],` +
		`"encrypted_content":"sealed+/=="}`)}
	phase := wire.State{Item: []byte(`{"phase":"final_answer"}`)}
	call.Prompt = fantasy.Prompt{
		fantasy.NewUserMessage("Hello?"),
		{Role: fantasy.MessageRoleAssistant,
			Content: []fantasy.MessagePart{fantasy.ReasoningPart{Text: "hm", ProviderOptions: state.With()},
				fantasy.TextPart{Text: "Hi.", ProviderOptions: phase.With()}}},
		fantasy.NewUserMessage("And?"),
	}
}

const responsesReply = `{"type":"response.created","response":{"id":"r"}}

data: {"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}

data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"delta":"ok"}

data: {"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]}}

data: {"type":"response.completed","response":{"id":"r","status":"completed","usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}`

func TestEncryptedReasoningGoesBackWhereItCameFrom(t *testing.T) {
	server := &providertest.Scripted{Replies: providertest.Events(responsesReply)}
	if _, err := server.Ask(t, providertest.Specs["openai responses"], sealed); err != nil {
		t.Fatal(err)
	}
	const item = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm <b>"}],"encrypted_content":"sealed+/=="},{"content":"Hi.","role":"assistant","phase":"final_answer"}`
	check.Equal(t, "sent", 1, strings.Count(server.Sent[0], "hm"))
	check.Contains(t, server.Sent[0], item)
}

func TestReasoningThatIsRefusedIsLeftOut(t *testing.T) {
	for name, refusal := range map[string]string{
		"it cannot be decrypted": `{"error":{"message":"The encrypted content could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`,
		"what it led to is gone": `{"error":{"message":"Item 'rs_1' of type 'reasoning' was provided without its required following item.","type":"invalid_request_error","param":"input","code":null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			server := &providertest.Scripted{
				Replies: append([]providertest.Reply{{Status: http.StatusBadRequest, Body: refusal}},
					providertest.Events(responsesReply)...)}
			got, err := server.Ask(t, providertest.Specs["openai responses"], sealed)
			check.Equal(t, "error, parts, text", []any{nil, 1, "ok"}, []any{err, len(got.Parts), *got.Parts[0].Text})
			check.Equal(t, "requests", 2, len(server.Sent))
			check.Lacks(t, server.Sent[1], "reasoning")
		})
	}
}

func TestAnotherRefusalIsNotAskedAgainWithoutReasoning(t *testing.T) {
	refusal := `{"error":{"message":"Unsupported parameter: 'x'.","type":"invalid_request_error","param":"x","code":null}}`
	server := &providertest.Scripted{Replies: append([]providertest.Reply{{Status: http.StatusBadRequest, Body: refusal}},
		providertest.Events(responsesReply)...)}
	if _, err := server.Ask(t, providertest.Specs["openai responses"], sealed); err == nil || len(server.Sent) != 1 {
		t.Errorf("sent %q, %v", server.Sent, err)
	}
}

func TestAnotherModelsEncryptedReasoningIsNotSent(t *testing.T) {
	if a, b := prompt.Origin(v1beta1.ProviderOpenAI, "gpt-5"),
		prompt.Origin(v1beta1.ProviderOpenAI, "gpt-5-mini"); a == b {
		t.Errorf("both are of %s", a)
	}
}
