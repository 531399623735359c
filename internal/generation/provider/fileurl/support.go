// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fileurl knows which providers fetch which files by their URLs, and retries calls without those that they
// refuse.
package fileurl

import (
	"net/url"
	"regexp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
)

// support is what a provider fetches itself from a URL.
type support struct {
	provider v1beta1.ModelProvider
	// transport; empty: OpenAI's chat completions, or what the provider has in its place.
	transport v1beta1.ModelTransport
	// models that do; nil: all.
	models     *regexp.Regexp
	mediaTypes []string
}

var (
	images        = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	imagesAndPDFs = append([]string{"application/pdf"}, images...)
)

// supported has what each provider documents to fetch. Other providers get no URL: Bedrock takes content alone (see
// Anthropic's page on vision below) and its requests are signed as they are; a server that speaks OpenAI's
// protocol for others often runs in the cluster, and whether it fetches anything is unknown.
var supported = []support{
	// https://platform.claude.com/docs/en/build-with-claude/vision and .../pdf-support: a source of type url.
	{provider: v1beta1.ProviderAnthropic, mediaTypes: imagesAndPDFs},
	// https://developers.openai.com/api/docs/guides/images-vision and .../file-inputs:
	// file_url is not for chat completions.
	{provider: v1beta1.ProviderOpenAI, mediaTypes: images},
	{provider: v1beta1.ProviderOpenAI, transport: v1beta1.TransportResponses, mediaTypes: imagesAndPDFs},
	// https://learn.microsoft.com/azure/ai-foundry/openai/how-to/gpt-with-vision: an HTTP or HTTPS URL that the public can
	// get; .../how-to/responses has images by URL, but PDFs only by content and by id.
	{provider: v1beta1.ProviderAzure, mediaTypes: images},
	{provider: v1beta1.ProviderAzure, transport: v1beta1.TransportResponses, mediaTypes: images},
	// https://openrouter.ai/docs/guides/overview/multimodal/images and .../pdfs:
	// file_data takes a URL in place of the content.
	{provider: v1beta1.ProviderOpenRouter, mediaTypes: imagesAndPDFs},
	// https://vercel.com/docs/ai-gateway/sdks-and-apis/openai-chat-completions:
	// the specification of OpenAI's chat completions.
	{provider: v1beta1.ProviderVercel, mediaTypes: images},
	// https://ai.google.dev/gemini-api/docs/file-input-methods#external-urls: not for Gemini 2.0, and no GIFs.
	{
		provider: v1beta1.ProviderGoogle, models: fetchingGemini,
		mediaTypes: []string{"image/png", "image/jpeg", "image/webp", "application/pdf"},
	},
}

// fetchingGemini are the models of Gemini from 2.5 on; aliases such as gemini-flash-latest name a newer one.
var fetchingGemini = regexp.MustCompile(`^(?:models/)?gemini-(?:2\.5\b|[3-9]|[1-9]\d|(?:pro|flash|flash-lite)-latest$)`)

// supportOf is what the provider of a configuration fetches itself; nil: nothing. One whose baseURL leads into a
// private network fetches nothing either: it would do so from within, where only the hosts that the administrator
// allows are called.
func supportOf(spec *v1beta1.ChatModelConfigSpec) *support {
	if inPrivate(spec.BaseURL) {
		return nil
	}
	responses := spec.Transport == v1beta1.TransportResponses
	for i, row := range supported {
		if row.provider == spec.Provider && (row.transport == v1beta1.TransportResponses) == responses {
			if row.models != nil && !row.models.MatchString(spec.Model) {
				return nil
			}
			return &supported[i]
		}
	}
	return nil
}

// MediaTypes are those of the files that the provider of a configuration fetches itself.
func MediaTypes(spec *v1beta1.ChatModelConfigSpec) []string {
	if s := supportOf(spec); s != nil {
		return s.mediaTypes
	}
	return nil
}

// inPrivate reports whether a baseURL leads into a private network; none leads to the provider itself.
func inPrivate(baseURL string) bool {
	if baseURL == "" {
		return false
	}
	u, err := url.Parse(baseURL)
	if err != nil {
		return true
	}
	u.User = nil
	return !prompt.PublicURL(u.String())
}
