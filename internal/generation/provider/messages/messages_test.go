// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"charm.land/fantasy"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

const (
	start = `{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1,"output_tokens":1}}}`
	end   = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`
)

// blocks are the events of a reply with these blocks.
func blocks(blocks ...string) []providertest.Reply {
	events := []string{start}
	for i, block := range blocks {
		index := string(rune('0' + i))
		events = append(events, `{"type":"content_block_start","index":`+index+`,"content_block":`+block+`}`,
			`{"type":"content_block_stop","index":`+index+`}`)
	}
	return providertest.Events(append(events, end)...)
}

const hi = `{"type":"text","text":"Hi"}`

// sentFields are fields of the request of a call.
func sentFields(t *testing.T, spec v1beta1.ChatModelConfigSpec, change func(*fantasy.Call)) (fields map[string]any,
	warnings []string) {
	t.Helper()
	server := &providertest.Scripted{Replies: blocks(hi)}
	got, err := server.Ask(t, spec, change)
	check.OK(t, err)
	check.OK(t, json.Unmarshal([]byte(server.Sent[0]), &fields))
	return fields, got.Warnings
}

func TestSettingsOfACallReachTheWire(t *testing.T) {
	type settings = wire.Settings
	tool := fantasy.FunctionTool{Name: "f", InputSchema: map[string]any{"type": "object"}}
	search := fantasy.ProviderDefinedTool{Name: wire.WebSearch, Args: map[string]any{
		wire.AllowedDomains: []string{"example.com"}, wire.City: "Tokyo", wire.Country: "JP"}}
	effort, closed := v1beta1.EffortHigh, map[string]any{"type": "object", "additionalProperties": false}
	for name, c := range map[string]struct {
		settings    settings
		tools       []fantasy.Tool
		choice      fantasy.ToolChoice
		field, want string
		left        string
	}{
		"output": {settings{Output: &wire.Output{Name: "n", Schema: closed}, Effort: effort}, nil, "", "output_config",
			`{"effort":"high","format":{"schema":{"additionalProperties":false,"type":"object"},"type":"json_schema"}}`, ""},
		"stop":           {settings{Stop: []string{"END"}}, nil, "", "stop_sequences", `["END"]`, ""},
		"no tool":        {settings{}, []fantasy.Tool{tool}, fantasy.ToolChoiceNone, "tool_choice", `{"type":"none"}`, ""},
		"auto":           {settings{}, []fantasy.Tool{tool}, fantasy.ToolChoiceAuto, "tool_choice", `{"type":"auto"}`, ""},
		"any tool":       {settings{}, []fantasy.Tool{tool}, fantasy.ToolChoiceRequired, "tool_choice", `{"type":"any"}`, ""},
		"one tool":       {settings{}, []fantasy.Tool{tool}, "f", "tool_choice", `{"name":"f","type":"tool"}`, ""},
		"none to choose": {settings{}, nil, fantasy.ToolChoiceAuto, "tool_choice", "null", ""},
		"no thinking where it must call": {settings{Effort: effort}, []fantasy.Tool{tool}, "f", "thinking", "null",
			"thinking"},
		"a search": {settings{}, []fantasy.Tool{search}, "", "tools", `[{"allowed_domains":["example.com"],` +
			`"name":"web_search","type":"web_search_20250305","user_location":{"city":"Tokyo","country":"JP",` +
			`"type":"approximate"}}]`, ""},
		"code": {settings{}, []fantasy.Tool{fantasy.ProviderDefinedTool{Name: wire.CodeExecution}}, "", "tools",
			`[{"name":"code_execution","type":"code_execution_20260521"}]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := providertest.Specs["anthropic"]
			spec.Model = "claude-opus-4-6"
			sent, warnings := sentFields(t, spec, func(call *fantasy.Call) {
				call.ProviderOptions, call.Tools = c.settings.With(), c.tools
				if c.choice != "" {
					call.ToolChoice = &c.choice
				}
			})
			got, _ := json.Marshal(sent[c.field])
			check.Equal(t, "what is sent", c.want, string(got))
			if left := strings.Join(warnings, "; "); !strings.HasPrefix(left, c.left) || (left == "") != (c.left == "") {
				t.Errorf("warnings: %s", left)
			}
		})
	}
}

func TestBlocksOfTheProviderGoBackUnchanged(t *testing.T) {
	came := []string{
		`{"data":"sealed","type":"redacted_thinking"}`,
		`{"caller":{"type":"direct"},"id":"srvtoolu_1","input":{"command":"ls"},"name":"bash_code_execution","type":"server_tool_use"}`,
		`{"content":{"content":[],"return_code":1,"stderr":"b","stdout":"a","type":"bash_code_execution_result"},"tool_use_id":"srvtoolu_1","type":"bash_code_execution_tool_result"}`,
		`{"text":"Hi","type":"text"}`,
	}
	server := &providertest.Scripted{Replies: blocks(came...)}
	spec := providertest.Specs["anthropic"]
	reply, err := server.Ask(t, spec, nil)
	if err != nil || reply.Parts[2].ToolResult.Output != "ab" || reply.Parts[1].ToolCall.Name != wire.CodeExecution {
		t.Fatalf("got %+v, %v", reply.Parts, err)
	}
	history := []v1beta1.ChatMessage{{Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleAssistant, Parts: reply.Parts}}}
	sent, _ := sentFields(t, spec, func(call *fantasy.Call) {
		call.Prompt = prompt.Build(prompt.Input{History: history, Dialect: provider.DialectOf(&spec)})
	})
	said, _ := json.Marshal(sent["messages"].([]any)[1].(map[string]any)["content"])
	got := strings.Replace(string(said), `"cache_control":{"type":"ephemeral"},`, "", 1)
	check.Equal(t, "what goes back", "["+strings.Join(came, ",")+"]", got)
}

// taken keeps a request, and answers with an exception of AWS within a stream.
type taken struct {
	request *http.Request
	body    string
}

func (c *taken) RoundTrip(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	c.request, c.body = r, string(raw)
	body := &strings.Builder{}
	message := eventstream.Message{Payload: []byte(`{"message":"Too many requests"}`)}
	message.Headers.Set(":message-type", eventstream.StringValue("exception"))
	message.Headers.Set(":exception-type", eventstream.StringValue("throttlingException"))
	if err == nil {
		err = eventstream.NewEncoder().Encode(body, message)
	}
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader(body.String())),
		Header: http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}}}, err
}

func ofBedrock(t *testing.T, key string) (*taken, *v1beta1.GenerationError) {
	t.Helper()
	spec := v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderBedrock, Model: "anthropic.claude-x-v1:0",
		Headers: []v1beta1.Header{{Name: "anthropic-beta", Value: "one, two"}}}
	server := &taken{}
	err := providertest.CallWith(t.Context(), t, &spec, key, "Hello?", &http.Client{Transport: server})
	return server, fault.Classify(err, fault.Subject{Config: "main", Spec: &spec})
}

func TestBedrockIsAskedWithThePodsCredentials(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for key, want := range map[string]string{"": "AWS4-HMAC-SHA256 Credential=AKID/", "k": "Bearer k"} {
		got, e := ofBedrock(t, key)
		check.Equal(t, "an exception", []any{v1beta1.ErrorRateLimited, true}, []any{e.Reason, e.Retryable})
		header := got.request.Header
		if !strings.HasPrefix(header.Get("Authorization"), want) || header.Get("Anthropic-Beta") != "" ||
			key == "" && !strings.Contains(header.Get("Authorization"), "/eu-west-1/bedrock/aws4_request") ||
			got.request.URL.Host != "bedrock-runtime.eu-west-1.amazonaws.com" {
			t.Errorf("%s is asked with %v", got.request.URL, header)
		}
		check.Contains(t, got.body, `"anthropic_beta":["one","two"]`)
	}
}

func TestBedrockWithoutCredentialsIsNotAsked(t *testing.T) {
	for name, value := range map[string]string{"AWS_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"} {
		t.Setenv(name, value)
	}
	if got, e := ofBedrock(t, ""); got.request != nil || e.Reason != v1beta1.ErrorAuthenticationFailed || e.Retryable {
		t.Errorf("got %+v", e)
	}
}

func TestFailureOfAWSTokenServiceIsTemporary(t *testing.T) {
	answer := func(status int, code string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<ErrorResponse><Error><Code>"+code+"</Code><Message>No.</Message></Error></ErrorResponse>")
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	token := filepath.Join(t.TempDir(), "token")
	check.OK(t, os.WriteFile(token, []byte("secret"), 0o600))
	for name, value := range map[string]string{"AWS_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_MAX_ATTEMPTS": "1",
		"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/models"} {
		t.Setenv(name, value)
	}
	for name, c := range map[string]struct {
		at     string
		passes bool
	}{
		"it fails":           {answer(http.StatusServiceUnavailable, "ServiceUnavailable"), true},
		"it has no capacity": {answer(http.StatusBadRequest, "Throttling"), true},
		"it is not reached":  {"http://127.0.0.1:1", true},
		"it refuses":         {answer(http.StatusForbidden, "AccessDenied"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_ENDPOINT_URL_STS", c.at)
			got, e := ofBedrock(t, "")
			check.Equal(t, "the failure", []any{v1beta1.ErrorAuthenticationFailed, c.passes}, []any{e.Reason, e.Retryable})
			check.Lacks(t, e.Text(), "127.0.0.1", "secret")
			if got.request != nil {
				t.Error("the model is asked")
			}
		})
	}
}

func TestExtraBodyGoesIntoTheRequest(t *testing.T) {
	spec := providertest.Specs["anthropic"]
	extra := &runtime.RawExtension{
		Raw: []byte(`{"metadata":{"user_id":"u"},"max_tokens":12345678901234567890,"x.9":1,"stream":false,"":null}`)}
	spec.ProviderOptions = &v1beta1.ProviderOptions{Anthropic: &v1beta1.AnthropicOptions{ExtraBody: extra}}
	sent, _ := sentFields(t, spec, nil)
	got, _ := json.Marshal(sent)
	check.Contains(t, string(got), `"metadata":{"user_id":"u"}`, `"x.9":1`, `"stream":true`, `"":null`)
}

func TestCitationsOfAnthropicStandBehindTheirText(t *testing.T) {
	cite := func(url string) string {
		return `{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"` + url + `","title":"T","cited_text":"x","encrypted_index":"e"}}}`
	}
	server := &providertest.Scripted{
		Replies: providertest.Events(
			`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"citations":[],"type":"text","text":""}}`,
			cite("https://a.example.com"), `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"b"}}`,
			cite("https://b.example.com"), cite("https://a.example.com"), `{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"c"}}`,
			`{"type":"content_block_stop","index":2}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`,
			`{"type":"message_stop"}`)}
	got, err := server.Ask(t, providertest.Specs["anthropic"], nil)
	check.OK(t, err)
	var outline []string
	for _, part := range got.Parts {
		if part.Source != nil {
			outline = append(outline, part.Source.URL+" "+part.Source.Title)
		} else {
			outline = append(outline, *part.Text)
		}
	}
	check.Equal(t, "c", outline, []string{"a", "b", "https://a.example.com T", "https://b.example.com T", "c"})
}
