// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"encoding/json"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
)

func TestAnAdviceIsNotStoredAtItsProvider(t *testing.T) {
	for name, c := range map[string]struct{ options, want string }{
		"nothing said":   {`{}`, `{}`},
		"stored":         {`{"openai":{"store":true,"user":"u"}}`, `{"openai":{"user":"u"}}`},
		"not stored":     {`{"azure":{"store":false}}`, `{"azure":{}}`},
		"responses":      {`{"openaiResponses":{"store":true,"user":"u"}}`, `{"openaiResponses":{"user":"u"}}`},
		"azure's":        {`{"azureResponses":{"store":true}}`, `{"azureResponses":{}}`},
		"another option": {`{"openai":{"user":"u"}}`, `{"openai":{"user":"u"}}`},
		"no extra body":  {`{"vercel":{"user":"u"}}`, `{"vercel":{"user":"u"}}`},
		// These fields go into the request as they are.
		"stored by the request's own field": {
			`{"openaiCompatible":{"user":"u","extraBody":{"store":true,"seed":12345678901234567890}}}`,
			`{"openaiCompatible":{"user":"u","extraBody":{"seed":12345678901234567890}}}`},
		"of OpenRouter": {`{"openrouter":{"extraBody":{"store":true}}}`, `{"openrouter":{"extraBody":{}}}`},
		"of Vercel":     {`{"vercel":{"extraBody":{"store":true}}}`, `{"vercel":{"extraBody":{}}}`},
		"of Anthropic":  {`{"anthropic":{"extraBody":{"store":true}}}`, `{"anthropic":{"extraBody":{}}}`},
		"of Bedrock":    {`{"bedrock":{"extraBody":{"store":true,"a":1}}}`, `{"bedrock":{"extraBody":{"a":1}}}`},
		"a field of another field's own": {`{"openaiCompatible":{"extraBody":{"options":{"store":true}}}}`,
			`{"openaiCompatible":{"extraBody":{"options":{"store":true}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var given v1alpha1.ProviderOptions
			if err := json.Unmarshal([]byte(c.options), &given); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(withoutStore(&given))
			check.Equal(t, "error, result", []any{nil, c.want}, []any{err, string(got)})
			if again, _ := json.Marshal(&given); string(again) != c.options {
				t.Errorf("the configuration's own options have become %s", again)
			}
		})
	}
	if withoutStore(nil) != nil {
		t.Error("options came from nowhere")
	}
}
