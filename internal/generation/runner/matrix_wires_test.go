// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/test/modelserver"
)

// wireForm is one way in which a provider is spoken to.
type wireForm struct {
	name      string
	provider  v1alpha1.ModelProvider
	transport v1alpha1.ModelTransport
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
		name: "openai chat", provider: v1alpha1.ProviderOpenAI, model: "gpt-5", base: "/v1",
		path: "/v1/chat/completions", keyHeader: "Authorization", keyPrefix: bearer, maxTokens: `"max_completion_tokens":77`,
	},
	{
		name: "openai responses", provider: v1alpha1.ProviderOpenAI, transport: v1alpha1.TransportResponses, model: "gpt-5",
		base: "/v1",
		path: "/v1/responses", keyHeader: "Authorization", keyPrefix: bearer, maxTokens: `"max_output_tokens":77`,
		replays: `"encrypted_content":"` + proof,
	},
	{
		name: "anthropic", provider: v1alpha1.ProviderAnthropic, model: "claude-x", base: "/",
		path: "/v1/messages", keyHeader: "X-Api-Key", maxTokens: `"max_tokens":77`, replays: `"signature":"` + proof,
	},
	{
		name: "google", provider: v1alpha1.ProviderGoogle, model: "gemini-3-pro", base: "/",
		path: "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", keyHeader: "X-Goog-Api-Key",
		maxTokens: `"maxOutputTokens":77`,
		replays:   `"thoughtSignature":"` + geminiProof,
	},
	{
		name: "openai-compatible", provider: v1alpha1.ProviderOpenAICompatible, model: "scripted", base: "/v1",
		path: "/v1/chat/completions", keyHeader: "Authorization", keyPrefix: bearer, maxTokens: `"max_tokens":77`,
		replays: `"reasoning_content":"hm"`,
	},
	{
		name: "openrouter", provider: v1alpha1.ProviderOpenRouter, model: "anthropic/claude-x", base: "-",
		path: "/api/v1/chat/completions", keyHeader: "Authorization", keyPrefix: bearer, maxTokens: `"max_tokens":77`,
		replays: `"signature":"` + proof,
	},
	{
		name: "azure chat", provider: v1alpha1.ProviderAzure, model: "my-deployment", base: "/openai/v1",
		apiVersion: "preview",
		path:       "/openai/v1/chat/completions?api-version=preview", keyHeader: "Api-Key", maxTokens: `"max_tokens":77`,
	},
	{
		name: "azure responses", provider: v1alpha1.ProviderAzure, transport: v1alpha1.TransportResponses,
		model: "my-deployment", base: "/openai/v1",
		path: "/openai/v1/responses", keyHeader: "Api-Key", maxTokens: `"max_output_tokens":77`,
		replays: `"encrypted_content":"` + proof,
	},
	{
		name: "bedrock", provider: v1alpha1.ProviderBedrock, model: "us.anthropic.claude-x-v1:0", base: "-",
		path: "/model/us.anthropic.claude-x-v1%3A0/invoke-with-response-stream", keyHeader: "Authorization",
		keyPrefix: bearer,
		maxTokens: `"max_tokens":77`, replays: `"signature":"` + proof,
	},
	{
		name: "vercel", provider: v1alpha1.ProviderVercel, model: "anthropic/claude-x", base: "/vercel/v1",
		path: "/vercel/v1/chat/completions", keyHeader: "Authorization", keyPrefix: bearer, maxTokens: `"max_tokens":77`,
		replays: `"signature":"` + proof,
	},
}

func (w wireForm) config(ns, name, server string) *v1alpha1.ChatModelConfig {
	config := modelConfig(ns, name, "")
	spec := &config.Spec
	spec.Provider, spec.Transport, spec.Model, spec.APIVersion = w.provider, w.transport, w.model, w.apiVersion
	if w.base != "-" {
		spec.BaseURL = server + w.base
	}
	if w.provider == v1alpha1.ProviderBedrock {
		spec.Region = "eu-central-1"
	}
	if w.transport == v1alpha1.TransportResponses {
		options := &v1alpha1.OpenAIResponsesOptions{Include: []string{"reasoning.encrypted_content"}}
		spec.ProviderOptions = &v1alpha1.ProviderOptions{OpenAIResponses: options}
		if w.provider == v1alpha1.ProviderAzure {
			spec.ProviderOptions = &v1alpha1.ProviderOptions{AzureResponses: options}
		}
	}
	return config
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

// wired is a pod whose chats speak one wire form.
type wired struct {
	*pod
	wireForm

	lines *lines
}

func startWired(t *testing.T, w wireForm, script modelserver.Script) *wired {
	t.Helper()
	p, url := newPod(t, script)
	wrong := w.config(p.ns, "wrong", url)
	wrong.Spec.APIKey.SecretKeyRef.Key = "wrong"
	create(t, wrong)
	hasty := w.config(p.ns, "hasty", url)
	hasty.Spec.SilenceTimeoutSeconds = new(int32(1))
	create(t, hasty)
	create(t, w.config(p.ns, "limited", url))
	create(t, w.config(p.ns, "default", url))
	out := &wired{pod: p, wireForm: w, lines: newLines(t, url)}
	p.launch(func(_ *pod, o *runner.Options) {
		o.HTTP = &http.Client{Transport: out.lines}
	})
	return out
}

// in is the same pod in a test below the one that it was started in.
func (w *wired) in(t *testing.T) *wired {
	inner := *w.pod
	inner.t = t
	return &wired{pod: &inner, wireForm: w.wireForm, lines: w.lines}
}

// ours are marks of the goroutines that a call has: the attempt's, those of the protocols, and those of connections to
// a model.
var ours = []string{"runner.(*attempt)", "parley/internal/generation/provider", "modelserver.(*exchange)"}

// nothingLeft waits until no request is open, no connection to the model but idle ones, and no goroutine of a call.
func (w *wired) nothingLeft() {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		w.lines.CloseIdleConnections()
		requests, connections, stack := w.models.InFlight(), w.lines.open.Load(), leftover()
		if requests == 0 && connections == 0 && stack == "" {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("left over: %d requests, %d connections, and %s", requests, connections, stack)
		}
		<-time.After(5 * time.Millisecond)
	}
}

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
