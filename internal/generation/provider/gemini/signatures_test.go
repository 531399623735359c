// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
	"parley.dev/parley/test/modelserver"
)

// binarySignature is no text.
var binarySignature = base64.StdEncoding.EncodeToString([]byte("\x0a\xff\xfe\x80\x00scripted:x"))

func TestSignatureOfGeminiSurvivesJSON(t *testing.T) {
	script := modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{
		Steps: []modelserver.Step{modelserver.Think("hm"), modelserver.Say("Paris.")},
	}}}}
	model, server := geminiModel(t, script)
	var kept []byte
	for part := range streamOf(t, model, fantasy.NewUserMessage("a")) {
		if part.Type == fantasy.StreamPartTypeFinish && finish.LastOf(&part).ResponseID == "" {
			t.Error("the id of the reply is lost")
		}
		if part.ProviderMetadata != nil && part.Type != fantasy.StreamPartTypeFinish {
			var err error
			if kept, err = json.Marshal(part.ProviderMetadata); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range streamOf(t, model, fantasy.NewUserMessage("a"), thoughtOf(t, kept), fantasy.NewUserMessage("b")) {
	}
	last := server.Requests()[1]
	var body struct {
		Contents []struct {
			Parts []struct {
				Text             string `json:"text"`
				ThoughtSignature []byte `json:"thoughtSignature"`
			} `json:"parts"`
		} `json:"contents"`
	}
	check.OK(t, json.Unmarshal(last.Body, &body))
	if part := body.Contents[1].Parts[0]; last.Status != http.StatusOK || part.Text != "Paris." ||
		!strings.HasPrefix(string(part.ThoughtSignature), "\x0a\xff\xfe\x80\x00scripted:") {
		t.Errorf("answered with %d to %s", last.Status, last.Body)
	}
}

func TestASignatureThatIsNoneIsLeftOut(t *testing.T) {
	for kept, sent := range map[string]bool{binarySignature: true, "\ufffd\ufffdscripted:x": false, "": false} {
		model, server := geminiModel(t, modelserver.Script{})
		metadata, err := json.Marshal(map[string]any{"parley": map[string]any{"type": "parley.state",
			"data": map[string]string{"signature": kept}}})
		check.OK(t, err)
		for range streamOf(t, model, fantasy.NewUserMessage("a"), thoughtOf(t, metadata), fantasy.NewUserMessage("b")) {
		}
		got := server.Requests()[0]
		check.Equal(t, "status, contained", []any{http.StatusOK, sent},
			[]any{got.Status, strings.Contains(string(got.Body), "thoughtSignature")})
	}
}

func geminiModel(t *testing.T, script modelserver.Script) (fantasy.LanguageModel, *modelserver.Server) {
	t.Helper()
	server, err := modelserver.New(script)
	check.OK(t, err)
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	model, err := provider.New(providertest.Gemini.Spec(listener.URL), providertest.Key, http.DefaultClient)
	check.OK(t, err)
	return model, server
}

func streamOf(t *testing.T, model fantasy.LanguageModel, prompt ...fantasy.Message) fantasy.StreamResponse {
	t.Helper()
	stream, err := model.Stream(t.Context(), fantasy.Call{Prompt: prompt})
	check.OK(t, err)
	return stream
}

// thoughtOf is a reply whose reasoning has the metadata.
func thoughtOf(t *testing.T, metadata []byte) fantasy.Message {
	t.Helper()
	var raw map[string]json.RawMessage
	check.OK(t, json.Unmarshal(metadata, &raw))
	options, err := fantasy.UnmarshalProviderOptions(raw)
	check.OK(t, err)
	return fantasy.Message{Role: fantasy.MessageRoleAssistant, Content: []fantasy.MessagePart{
		fantasy.ReasoningPart{Text: "hm", ProviderOptions: options}, fantasy.TextPart{Text: "Paris."},
	}}
}
