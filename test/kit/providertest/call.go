// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package providertest calls models of every provider over HTTP. Its keys and prompts are marked, so that a test sees
// where one of them comes out.
package providertest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/test/kit/check"
)

const (
	// Key is the API key of the calls.
	Key = "sk-live-0123456789"
	// Secret is what their prompts say.
	Secret = "my-prompt-of-great-secrecy"
)

// Protocol is a provider and one of its transports.
type Protocol struct {
	Provider  v1beta1.ModelProvider
	Transport v1beta1.ModelTransport
}

// A provider of each protocol, and a server that imitates OpenAI.
var (
	Chat       = Protocol{v1beta1.ProviderOpenAI, v1beta1.TransportChatCompletions}
	Responses  = Protocol{v1beta1.ProviderOpenAI, v1beta1.TransportResponses}
	Compatible = Protocol{v1beta1.ProviderOpenAICompatible, ""}
	Claude     = Protocol{v1beta1.ProviderAnthropic, ""}
	Gemini     = Protocol{v1beta1.ProviderGoogle, ""}
)

// All are all of them.
var All = []Protocol{Chat, Responses, Compatible, Claude, Gemini}

// Spec returns a configuration of the protocol.
func (p Protocol) Spec(baseURL string) *v1beta1.ChatModelConfigSpec {
	return &v1beta1.ChatModelConfigSpec{
		Provider: p.Provider, Transport: p.Transport, Model: "some-model", BaseURL: baseURL,
		APIKey:  &v1beta1.APIKeySource{SecretKeyRef: v1beta1.SecretKeyReference{Name: "keys", Key: "token"}},
		Headers: []v1beta1.Header{{Name: "X-Team", Value: "blue"}},
	}
}

// Call calls the model with Key and Secret, and returns the error that the call ends in.
func Call(t *testing.T, spec *v1beta1.ChatModelConfigSpec, client *http.Client) error {
	t.Helper()
	return CallWith(t.Context(), t, spec, Key, Secret, client)
}

// CallWith calls the model, and returns the error that the call ends in.
func CallWith(ctx context.Context, t *testing.T, spec *v1beta1.ChatModelConfigSpec, key, prompt string,
	client *http.Client) error {
	t.Helper()
	model, err := provider.New(spec, key, client)
	check.OK(t, err)
	maxTokens := int64(777)
	stream, err := model.Stream(ctx, fantasy.Call{
		Prompt:          fantasy.Prompt{fantasy.NewUserMessage(prompt)},
		MaxOutputTokens: &maxTokens,
	})
	if err != nil {
		return err
	}
	finished := false
	for part := range stream {
		switch part.Type {
		case fantasy.StreamPartTypeError:
			return part.Error
		case fantasy.StreamPartTypeFinish:
			finished = true
		}
	}
	if !finished {
		return fantasy.NewIncompleteStreamError()
	}
	return nil
}

// Leaked is the first of the texts that is in the message, and empty if none is.
func Leaked(message string, texts ...string) string {
	for _, text := range texts {
		if strings.Contains(message, text) {
			return text
		}
	}
	return ""
}

// Canned answers every request with the same bytes.
type Canned struct {
	Status int
	Header http.Header
	Body   []byte
}

// RoundTrip implements http.RoundTripper.
func (c Canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_ = r.Body.Close() // It is not read.
	return &http.Response{
		StatusCode: c.Status, Status: http.StatusText(c.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: c.Header.Clone(), Body: io.NopCloser(bytes.NewReader(c.Body)), Request: r,
	}, nil
}

// Redirect returns a client that sends every request to one server, whatever it was for: some providers have a fixed
// address.
func Redirect(t testing.TB, to string) *http.Client {
	t.Helper()
	target, err := url.Parse(to)
	check.OK(t, err)
	return &http.Client{Transport: redirect{target}}
}

type redirect struct{ to *url.URL }

// RoundTrip implements http.RoundTripper.
func (r redirect) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.URL.Scheme, request.URL.Host, request.Host = r.to.Scheme, r.to.Host, r.to.Host
	return http.DefaultTransport.RoundTrip(request)
}
