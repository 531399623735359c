// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/url"
	"regexp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/prompt"
)

// fileURLs is what a provider fetches itself from a URL.
type fileURLs struct {
	provider v1alpha1.ModelProvider
	// transport; empty: OpenAI's chat completions, or what the provider has in its place.
	transport v1alpha1.ModelTransport
	// models that do; nil: all.
	models *regexp.Regexp
	// kinds are the media types.
	kinds []string
	// form is how the protocol names a URL.
	form wireForm
}

var (
	images        = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	imagesAndPDFs = append([]string{"application/pdf"}, images...)
)

// fileURLTable has who documents to fetch what. Who is not in it is handed no URL: Bedrock takes content alone (the page on
// vision of Anthropic, below, says so) and its requests are signed as they are; a server that speaks OpenAI's protocol for
// others often stands in the cluster, and whether it fetches anything, nobody knows.
var fileURLTable = []fileURLs{
	// https://platform.claude.com/docs/en/build-with-claude/vision and .../pdf-support: a source of type url.
	{provider: v1alpha1.ProviderAnthropic, kinds: imagesAndPDFs, form: anthropicForm},
	// https://developers.openai.com/api/docs/guides/images-vision and .../file-inputs: file_url is not for chat completions.
	{provider: v1alpha1.ProviderOpenAI, kinds: images, form: chatForm},
	{provider: v1alpha1.ProviderOpenAI, transport: v1alpha1.TransportResponses, kinds: imagesAndPDFs, form: responsesForm},
	// https://learn.microsoft.com/azure/ai-foundry/openai/how-to/gpt-with-vision: an HTTP or HTTPS URL that the public can get;
	// .../how-to/responses has images by URL, but PDFs only by content and by id.
	{provider: v1alpha1.ProviderAzure, kinds: images, form: chatForm},
	{provider: v1alpha1.ProviderAzure, transport: v1alpha1.TransportResponses, kinds: images, form: responsesForm},
	// https://openrouter.ai/docs/guides/overview/multimodal/images and .../pdfs: file_data takes a URL in place of the content.
	{provider: v1alpha1.ProviderOpenRouter, kinds: imagesAndPDFs, form: chatForm},
	// https://vercel.com/docs/ai-gateway/sdks-and-apis/openai-chat-completions: the specification of OpenAI's chat completions.
	{provider: v1alpha1.ProviderVercel, kinds: images, form: chatForm},
	// https://ai.google.dev/gemini-api/docs/file-input-methods#external-urls: not for Gemini 2.0, and no GIFs.
	{provider: v1alpha1.ProviderGoogle, models: fetchingGemini, kinds: []string{"image/png", "image/jpeg", "image/webp", "application/pdf"}, form: geminiForm},
}

// fetchingGemini are the models of Gemini from 2.5 on; aliases such as gemini-flash-latest name a newer one.
var fetchingGemini = regexp.MustCompile(`^(?:models/)?gemini-(?:2\.5\b|[3-9]|[1-9]\d|(?:pro|flash|flash-lite)-latest$)`)

// fileURLsOf is what the provider of a configuration fetches itself; false: nothing. One whose baseURL leads into a private
// network fetches nothing either: it would do so from within, where only the hosts that the administrator allows are asked.
func fileURLsOf(spec *v1alpha1.ChatModelConfigSpec) (fileURLs, bool) {
	if inPrivate(spec.BaseURL) {
		return fileURLs{}, false
	}
	responses := spec.Transport == v1alpha1.TransportResponses
	for _, row := range fileURLTable {
		if row.provider == spec.Provider && (row.transport == v1alpha1.TransportResponses) == responses {
			return row, row.models == nil || row.models.MatchString(spec.Model)
		}
	}
	return fileURLs{}, false
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
