// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gemini speaks Google's Gemini protocol, generateContent. Of Google's library it imports the types of requests
// and events, and no client.
package gemini

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/wire"
)

// defaultBaseURL is where Google serves its models.
const defaultBaseURL = "https://generativelanguage.googleapis.com"

type protocol struct {
	url, key, model string
	gemini3, gemma  bool
	// aloneBecause is why tools of Google cannot be offered next to functions; empty: they can.
	aloneBecause string
}

// New returns the protocol for the model of a configuration.
func New(spec *v1beta1.ChatModelConfigSpec, apiKey string) (wire.Protocol, error) {
	at, err := address(spec)
	if err != nil {
		return nil, err
	}
	name := strings.ToLower(spec.Model)
	p := &protocol{url: at, key: apiKey, model: name, gemini3: IsGemini3(spec.Model),
		gemma: strings.HasPrefix(strings.TrimPrefix(name, "models/"), "gemma-")}
	switch {
	case !p.gemini3:
		p.aloneBecause = "models before Gemini 3 do not take it together with other tools"
	case spec.VertexAI != nil: // It does not have includeServerSideToolInvocations.
		p.aloneBecause = "Vertex AI does not take it together with other tools"
	}
	return p, nil
}

// address is the URL of the model. The version of Vertex AI's is the one of Google's own library.
func address(spec *v1beta1.ChatModelConfigSpec) (string, error) {
	name := strings.TrimPrefix(spec.Model, "models/")
	if vertex := spec.VertexAI; vertex != nil {
		if !strings.HasPrefix(name, "endpoints/") { // Those are tuned models.
			name = "publishers/google/models/" + name
		}
		at := &url.URL{Scheme: "https", Host: vertex.Host(), RawQuery: "alt=sse"}
		return at.JoinPath("v1beta1", "projects", vertex.Project, "locations", vertex.Location,
			name+":streamGenerateContent").String(), nil
	}
	base, err := url.Parse(cmp.Or(spec.BaseURL, defaultBaseURL))
	if err != nil {
		return "", fmt.Errorf("reading baseURL: %w", err)
	}
	if !strings.HasPrefix(name, "tunedModels/") {
		name = "models/" + name
	}
	at := base.JoinPath("v1beta", name+":streamGenerateContent")
	query := at.Query() // A proxy can want its own.
	query.Set("alt", "sse")
	at.RawQuery = query.Encode()
	return at.String(), nil
}

// beforeGemini3 are Gemini 1 and 2, and Gemma.
var beforeGemini3 = regexp.MustCompile(`^(?:models/)?gem(?:ini-[12]\b|ma)`)

// IsGemini3 reports whether a model is of Gemini 3 or later, as a model is whose name says nothing of its generation.
// These want each call signed, and take what earlier ones refuse: tools of Google next to functions, tools next to
// a schema of the reply, and files in results.
func IsGemini3(model string) bool { return !beforeGemini3.MatchString(model) }

func (p *protocol) Request(_ context.Context, call *fantasy.Call) (*wire.Request, []fantasy.CallWarning, error) {
	settings := wire.SettingsOf(call)
	b := &body{GenerationConfig: p.config(call, &settings)}
	if options := settings.Provider.Google; options != nil {
		b.CachedContent, b.SafetySettings = options.CachedContent, safetySettings(options.SafetySettings)
	}
	p.addPrompt(b, call.Prompt)
	warnings := p.offer(b, call)
	warnings = append(warnings, format(b, settings.Output)...)
	raw, err := json.Marshal(b)
	if err != nil {
		return nil, nil, fmt.Errorf("writing the request: %w", err)
	}
	request := &wire.Request{URL: p.url, Header: map[string]string{}, Body: raw}
	if p.key != "" {
		request.Header["X-Goog-Api-Key"] = p.key
	}
	return request, warnings, nil
}

func (p *protocol) Reply(parts *wire.Parts) wire.Reply { return &reply{parts: parts} }
