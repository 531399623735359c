// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/kit/waiting"
	"parley.dev/parley/test/modelserver"
)

// wireForm is one way in which a provider is spoken to.
type wireForm struct {
	name      string
	provider  v1beta1.ModelProvider
	transport v1beta1.ModelTransport
	model     string
	// base is the path of the configuration's baseURL; "-": the provider has none, and its host is led to the server.
	base       string
	apiVersion string
	// path is where requests go, and keyHeader and keyPrefix how they bring the key.
	path, keyHeader, keyPrefix string
	// maxTokens is how the limit of the output is sent.
	maxTokens string
	// replays is what the request after a reply with reasoning and calls holds of the reasoning. "": nothing, since the
	// provider keeps it to itself.
	replays string
}

const (
	bearer = "Bearer "
	// proof is how each signature of the scripted model begins, geminiProof how those of Gemini's protocol do.
	proof       = "c2NyaXB0ZWQ6"
	geminiProof = "Cv/+gABzY3JpcHRlZDp"
)

var wireForms = []wireForm{
	{
		name: "openai chat", provider: v1beta1.ProviderOpenAI, model: "gpt-5", base: "/v1",
		path: "/v1/chat/completions", keyHeader: "Authorization", keyPrefix: bearer, maxTokens: `"max_completion_tokens":77`,
	},
	{
		name: "openai responses", provider: v1beta1.ProviderOpenAI, transport: v1beta1.TransportResponses, model: "gpt-5",
		base: "/v1",
		path: "/v1/responses", keyHeader: "Authorization", keyPrefix: bearer, maxTokens: `"max_output_tokens":77`,
		replays: `"encrypted_content":"` + proof,
	},
	{
		name: "anthropic", provider: v1beta1.ProviderAnthropic, model: "claude-x", base: "/",
		path: "/v1/messages", keyHeader: "X-Api-Key", maxTokens: `"max_tokens":77`, replays: `"signature":"` + proof,
	},
	{
		name: "google", provider: v1beta1.ProviderGoogle, model: "gemini-3-pro", base: "/",
		path: "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", keyHeader: "X-Goog-Api-Key",
		maxTokens: `"maxOutputTokens":77`,
		replays:   `"thoughtSignature":"` + geminiProof,
	},
	{
		name: "openai-compatible", provider: v1beta1.ProviderOpenAICompatible, model: "scripted", base: "/v1",
		path: "/v1/chat/completions", keyHeader: "Authorization", keyPrefix: bearer, maxTokens: `"max_tokens":77`,
		replays: `"reasoning_content":"hm"`,
	},
	{
		name: "openrouter", provider: v1beta1.ProviderOpenRouter, model: "anthropic/claude-x", base: "-",
		path: "/api/v1/chat/completions", keyHeader: "Authorization", keyPrefix: bearer, maxTokens: `"max_tokens":77`,
		replays: `"signature":"` + proof,
	},
	{
		name: "azure chat", provider: v1beta1.ProviderAzure, model: "my-deployment", base: "/openai/v1",
		apiVersion: "preview",
		path:       "/openai/v1/chat/completions?api-version=preview", keyHeader: "Api-Key", maxTokens: `"max_tokens":77`,
	},
	{
		name: "azure responses", provider: v1beta1.ProviderAzure, transport: v1beta1.TransportResponses,
		model: "my-deployment", base: "/openai/v1",
		path: "/openai/v1/responses", keyHeader: "Api-Key", maxTokens: `"max_output_tokens":77`,
		replays: `"encrypted_content":"` + proof,
	},
	{
		name: "bedrock", provider: v1beta1.ProviderBedrock, model: "us.anthropic.claude-x-v1:0", base: "-",
		path: "/model/us.anthropic.claude-x-v1%3A0/invoke-with-response-stream", keyHeader: "Authorization",
		keyPrefix: bearer,
		maxTokens: `"max_tokens":77`, replays: `"signature":"` + proof,
	},
	{
		name: "vercel", provider: v1beta1.ProviderVercel, model: "anthropic/claude-x", base: "/vercel/v1",
		path: "/vercel/v1/chat/completions", keyHeader: "Authorization", keyPrefix: bearer, maxTokens: `"max_tokens":77`,
		replays: `"signature":"` + proof,
	},
}

// config is a configuration of the wire form at the server.
func (w wireForm) config(name, server string, change ...func(*v1beta1.ChatModelConfigSpec)) *v1beta1.ChatModelConfig {
	return modeltest.Config(name, "", append(change, func(s *v1beta1.ChatModelConfigSpec) {
		s.Provider, s.Transport, s.Model, s.APIVersion = w.provider, w.transport, w.model, w.apiVersion
		if w.base != "-" {
			s.BaseURL = server + w.base
		}
		if w.provider == v1beta1.ProviderBedrock {
			s.Region = "eu-central-1"
		}
		if w.transport != v1beta1.TransportResponses {
			return
		}
		options := &v1beta1.OpenAIResponsesOptions{Include: []string{"reasoning.encrypted_content"}}
		s.ProviderOptions = &v1beta1.ProviderOptions{OpenAIResponses: options}
		if w.provider == v1beta1.ProviderAzure {
			s.ProviderOptions = &v1beta1.ProviderOptions{AzureResponses: options}
		}
	})...)
}

// wired is a chat whose models speak one wire form.
type wired struct {
	*talk
	wireForm
	lines *lines
}

func newWired(t *testing.T, w wireForm, script modelserver.Script, change ...func(*v1beta1.ChatSpec)) *wired {
	t.Helper()
	c := newTalk(t, script, change...)
	out := &wired{c, w, newLines(t, c.URL)}
	c.HTTP = out.lines
	c.Put(w.config("default", c.URL))
	c.Put(w.config("hasty", c.URL, modeltest.Impatient))
	c.Put(w.config("wrong", c.URL, func(s *v1beta1.ChatModelConfigSpec) { s.APIKey.SecretKeyRef.Key = "wrong" }))
	return out
}

// wiredForm is the wire form of that name.
func wiredForm(name string) wireForm {
	return wireForms[slices.IndexFunc(wireForms, func(w wireForm) bool { return w.name == name })]
}

// onEach runs the test for each of the wire forms, and then looks for goroutines that calls have left behind.
func onEach(t *testing.T, forms []wireForm, test func(t *testing.T, w wireForm)) {
	t.Helper()
	t.Run("", func(t *testing.T) {
		for _, w := range forms {
			t.Run(w.name, func(t *testing.T) {
				t.Parallel()
				test(t, w)
			})
		}
	})
	var stack string
	waiting.Until(t, patience, "the goroutines of calls have ended", func() bool {
		stack = leftover()
		return stack == ""
	})
}

// closed waits until no request is open, and no connection to the model but idle ones.
func (w *wired) closed() {
	w.t.Helper()
	w.eventually("requests and connections are closed", func() bool {
		w.lines.CloseIdleConnections()
		return w.Server.InFlight() == 0 && w.lines.open.Load() == 0
	})
}

// lines counts the connections to the model that are open, and leads all of them to it.
type lines struct {
	http.Transport

	to   *url.URL
	open atomic.Int64
}

func newLines(t *testing.T, to string) *lines {
	t.Helper()
	l := &lines{}
	var err error
	if l.to, err = url.Parse(to); err != nil {
		t.Fatal(err)
	}
	l.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l.open.Add(1)
		return &line{Conn: conn, of: l}, nil
	}
	return l
}

// RoundTrip implements http.RoundTripper.
func (l *lines) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = l.to.Scheme, l.to.Host
	return l.Transport.RoundTrip(r)
}

type line struct {
	net.Conn

	of     *lines
	closed atomic.Bool
}

// Close implements net.Conn.
func (l *line) Close() error {
	if !l.closed.Swap(true) {
		l.of.open.Add(-1)
	}
	return l.Conn.Close()
}

// ours are marks of the goroutines that a call has: the step's, those of the protocols, and those of connections to
// a model.
var ours = []string{"step.(*Performer)", "parley/internal/generation/provider", "modelserver.(*exchange)"}

// leftover is the stack of a goroutine that a call has left behind; "" if there is none.
func leftover() string {
	buffer := make([]byte, 4<<20)
	for stack := range strings.SplitSeq(string(buffer[:runtime.Stack(buffer, true)]), "\n\n") {
		for _, mark := range ours {
			if strings.Contains(stack, mark) {
				return stack
			}
		}
	}
	return ""
}
