// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/fileurl"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
	"parley.dev/parley/test/modelserver"
)

const pdfType = "application/pdf"

func TestWhoFetchesWhat(t *testing.T) {
	images, all := "image/png image/jpeg image/gif image/webp", "image/png image/jpeg image/gif image/webp application/pdf"
	gemini := "image/png image/jpeg image/webp application/pdf"
	responses := v1beta1.TransportResponses
	for name, c := range map[string]struct {
		provider    v1beta1.ModelProvider
		transport   v1beta1.ModelTransport
		model, base string
		want        string
	}{
		"anthropic":                        {v1beta1.ProviderAnthropic, "", "", "", all},
		"anthropic through a proxy":        {v1beta1.ProviderAnthropic, "", "", "https://proxy.example.com", all},
		"anthropic, with a user":           {v1beta1.ProviderAnthropic, "", "", "https://u:p@proxy.example.com", all},
		"anthropic within the cluster":     {v1beta1.ProviderAnthropic, "", "", "https://proxy.ns.svc.cluster.local", ""},
		"openai, chat":                     {v1beta1.ProviderOpenAI, "", "", "", images},
		"openai, responses":                {v1beta1.ProviderOpenAI, responses, "", "", all},
		"a server that speaks as OpenAI":   {v1beta1.ProviderOpenAI, "", "", "http://vllm:8000/v1", ""},
		"a server on a private address":    {v1beta1.ProviderOpenAI, "", "", "https://10.0.0.1/v1", ""},
		"azure, chat":                      {v1beta1.ProviderAzure, "", "", "https://r.openai.azure.com", images},
		"azure, responses":                 {v1beta1.ProviderAzure, responses, "", "https://r.openai.azure.com", images},
		"openrouter":                       {v1beta1.ProviderOpenRouter, "", "", "", all},
		"vercel":                           {v1beta1.ProviderVercel, "", "", "", images},
		"bedrock":                          {v1beta1.ProviderBedrock, "", "", "", ""},
		"openai-compatible":                {v1beta1.ProviderOpenAICompatible, "", "", "https://models.example.com/v1", ""},
		"google, Gemini 2.5":               {v1beta1.ProviderGoogle, "", "gemini-2.5-flash-lite", "", gemini},
		"google, Gemini 3":                 {v1beta1.ProviderGoogle, "", "models/gemini-3.1-pro-preview", "", gemini},
		"google, a Gemini to come":         {v1beta1.ProviderGoogle, "", "gemini-10-pro", "", gemini},
		"google, the newest Gemini":        {v1beta1.ProviderGoogle, "", "gemini-flash-latest", "", gemini},
		"google, Gemini 2.0":               {v1beta1.ProviderGoogle, "", "gemini-2.0-flash", "", ""},
		"google, Gemini 1.5":               {v1beta1.ProviderGoogle, "", "gemini-1.5-pro-latest", "", ""},
		"google, Gemma":                    {v1beta1.ProviderGoogle, "", "gemma-3-27b-it", "", ""},
		"google, a name that says nothing": {v1beta1.ProviderGoogle, "", "tunedModels/mine", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := fileurl.MediaTypes(&v1beta1.ChatModelConfigSpec{
				Provider: c.provider, Transport: c.transport, Model: c.model, BaseURL: c.base}), strings.Fields(c.want)
			slices.Sort(want)
			if got = slices.Sorted(slices.Values(got)); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

var update = flag.Bool("update", false, "write the requests to testdata/requests instead of comparing them")

// fetchers are the providers that fetch files, each as it is called without a proxy.
var fetchers = map[string]v1beta1.ChatModelConfigSpec{
	"anthropic":        {Provider: v1beta1.ProviderAnthropic, Model: "claude-sonnet-4-5"},
	"openai-chat":      {Provider: v1beta1.ProviderOpenAI, Model: "gpt-5"},
	"openai-responses": {Provider: v1beta1.ProviderOpenAI, Model: "gpt-5", Transport: v1beta1.TransportResponses},
	"azure-chat":       {Provider: v1beta1.ProviderAzure, Model: "mine", BaseURL: "https://r.openai.azure.com"},
	"azure-responses": {Provider: v1beta1.ProviderAzure, Model: "mine", BaseURL: "https://r.openai.azure.com",
		Transport: v1beta1.TransportResponses},
	"openrouter": {Provider: v1beta1.ProviderOpenRouter, Model: "anthropic/claude"},
	"vercel": {Provider: v1beta1.ProviderVercel, Model: "openai/gpt-5",
		BaseURL: "https://ai-gateway.vercel.sh/vercel/v1"},
	"google": {Provider: v1beta1.ProviderGoogle, Model: "gemini-3-pro"},
}

// fetcher is a model whose provider is a scripted server, and the bodies that were sent to it.
type fetcher struct {
	spec  v1beta1.ChatModelConfigSpec
	model fantasy.LanguageModel
	sent  []string
}

func newFetcher(t *testing.T, spec v1beta1.ChatModelConfigSpec, rules ...modelserver.Rule) *fetcher {
	t.Helper()
	models, err := modelserver.New(modelserver.Script{Rules: append(rules,
		modelserver.Rule{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("ok")}}})})
	check.OK(t, err)
	f := &fetcher{spec: spec}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		check.Equal(t, "read", []any{nil, r.ContentLength}, []any{err, int64(len(body))})
		f.sent = append(f.sent, string(body))
		r.Body = io.NopCloser(bytes.NewReader(body))
		models.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.model, err = provider.New(&f.spec, providertest.Key, providertest.Redirect(t, server.URL))
	check.OK(t, err)
	return f
}

// ask streams a reply, and returns its text and the warnings.
func (f *fetcher) ask(t *testing.T, messages fantasy.Prompt) (text string, warnings []string, err error) {
	t.Helper()
	stream, err := f.model.Stream(t.Context(), fantasy.Call{Prompt: messages, MaxOutputTokens: new(int64(100))})
	if err != nil {
		return "", nil, err
	}
	for part := range stream {
		switch part.Type {
		case fantasy.StreamPartTypeError:
			err = part.Error
		case fantasy.StreamPartTypeTextDelta:
			text += part.Delta
		}
		for _, w := range part.Warnings {
			warnings = append(warnings, w.Setting+" "+w.Details)
		}
	}
	return text, warnings, err
}

// asked is a prompt with files by their URLs, one message for each.
func (f *fetcher) asked(files ...v1beta1.MessageFile) fantasy.Prompt {
	in := prompt.Input{Dialect: provider.DialectOf(&f.spec), Files: map[prompt.FileKey]prompt.File{}}
	for _, file := range files {
		m := v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleUser, Parts: []v1beta1.MessagePart{
			{Type: v1beta1.PartText, Text: new("See <" + file.Name + "> & say.")}, {Type: v1beta1.PartFile, File: &file},
		}}}
		m.Name = file.Name
		if file.URL != "" {
			in.Files[prompt.FileKey{Message: m.Name, Part: 1}] = prompt.File{URL: file.URL,
				Problem: "host files.example.com is none that files may be fetched from"}
		}
		in.History = append(in.History, m)
	}
	return prompt.Build(in)
}

func at(name, mediaType string) v1beta1.MessageFile {
	return v1beta1.MessageFile{Name: name, MediaType: mediaType, URL: "https://files.example.com/" + name +
		"?a=1&X-Amz-Signature=" + name}
}

// TestFilesAreHandedOverByTheirURLs holds what is really sent, as golden files; -update writes them.
func TestFilesAreHandedOverByTheirURLs(t *testing.T) {
	for name, spec := range fetchers {
		t.Run(name, func(t *testing.T) {
			f := newFetcher(t, spec)
			messages := f.asked(at("a.png", "image/png"), v1beta1.MessageFile{Name: "in.png", MediaType: "image/png",
				Data: "iVBORw0KGgpyZXN0"},
				at("b.pdf", pdfType), at("c.txt", "text/plain"), at("d.gif", "image/gif"))
			for range 2 { // The same bytes each time.
				text, warnings, err := f.ask(t, messages)
				check.Equal(t, "error, text, warnings", []any{nil, "ok", 0}, []any{err, text, len(warnings)})
			}
			if len(f.sent) != 2 || f.sent[0] != f.sent[1] {
				t.Fatalf("%d requests were made: %v", len(f.sent), f.sent)
			}
			checkGolden(t, filepath.Join("testdata", "requests", name+".json"), f.sent[0])
		})
	}
}

func checkGolden(t *testing.T, path, body string) {
	t.Helper()
	var got bytes.Buffer
	check.OK(t, json.Indent(&got, []byte(body), "", "  "))
	got.WriteByte('\n')
	if *update {
		check.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check.OK(t, os.WriteFile(path, got.Bytes(), 0o600))
	}
	want, err := os.ReadFile(path)
	check.OK(t, err)
	if got.String() != string(want) {
		t.Errorf("the request has changed; if it should have, run the test with -update and read the difference. Got:\n%s",
			got.String())
	}
}

func TestBedrockIsHandedNoURL(t *testing.T) {
	f := newFetcher(t, v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderBedrock, Model: "us.anthropic.claude",
		Region: "eu-central-1"})
	if _, _, err := f.ask(t, f.asked(at("a.png", "image/png"))); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(f.sent[0], "https://files") ||
		!strings.Contains(f.sent[0],
			`cannot be shown: host files.example.com is none that files may be fetched from, and the provider of the model fetches no files of this type itself.`) {
		t.Errorf("sent %s", f.sent[0])
	}
}
