// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/base64"
	"regexp"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
	"charm.land/fantasy/providers/google"
	"charm.land/fantasy/providers/openai"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/prompt"
)

// maxChatCallID is the longest id of a call in OpenAI's chat protocol, from its refusal: "string too long. Expected a string
// with maximum length 40". The other protocols take 64.
const maxChatCallID = 40

// DialectOf is what the provider of a configuration wants of a prompt.
func DialectOf(spec *v1alpha1.ChatModelConfigSpec) prompt.Dialect {
	d := prompt.Dialect{Origin: prompt.Origin(spec.Provider, spec.Model), Images: true, PDFs: true}
	if fetches, ok := fileURLsOf(spec); ok {
		d.FileURLs = fetches.kinds
	}
	switch spec.Provider {
	case v1alpha1.ProviderAnthropic, v1alpha1.ProviderBedrock:
		d.Metadata, d.CacheMark, d.Replays = anthropic.Name, cacheMark(), replaysSearch
	case v1alpha1.ProviderGoogle:
		d.Metadata, d.Alternate = google.Name, true
		if !unsignedCalls.MatchString(spec.Model) {
			d.CallMark = fantasy.ProviderOptions{google.Name: &google.ReasoningMetadata{Signature: unsigned}}
		}
	case v1alpha1.ProviderOpenAI, v1alpha1.ProviderAzure:
		d.Metadata = openai.Name
		if spec.Transport != v1alpha1.TransportResponses {
			d.JoinTexts, d.MaxCallID = true, maxChatCallID
		}
	case v1alpha1.ProviderOpenAICompatible:
		// Few of these servers take PDFs. Their templates often want users and replies to alternate, whatever tools come between.
		d.JoinTexts, d.Alternate, d.ReplyBetween, d.MaxCallID, d.PDFs = true, true, true, maxChatCallID, false
	default:
		// OpenRouter and Vercel document marks within the parts of a message's content. fantasy sets them beside the content where
		// that is one text, as in most messages: there is nothing to count on, so that there are none.
		d.JoinTexts, d.MaxCallID = true, maxChatCallID
	}
	return d
}

// unsigned stands for the signature of a call that has none; it is base64, as all signatures here.
var unsigned = base64.StdEncoding.EncodeToString([]byte("skip_thought_signature_validator"))

// unsignedCalls are the models of Google that do not ask for a signature of each call. The later ones refuse a call that
// another model made, unless it says, in a word that Google documents, that there is none to check.
var unsignedCalls = regexp.MustCompile(`^(?:models/)?gem(?:ini-[12]|ma)`)

func cacheMark() fantasy.ProviderOptions {
	return anthropic.NewProviderCacheControlOptions(&anthropic.ProviderCacheControlOptions{CacheControl: anthropic.CacheControl{Type: "ephemeral"}})
}

// serverToolID is the id of a call of Anthropic's own tools.
var serverToolID = regexp.MustCompile(`^srvtoolu_[a-zA-Z0-9_]+$`)

// replaysSearch tells whether Anthropic takes the call and its result back: a web search with the result as it was.
func replaysSearch(call fantasy.ToolCallPart, result fantasy.ToolResultPart) bool {
	search, ok := result.ProviderOptions[anthropic.Name].(*anthropic.WebSearchResultMetadata)
	return ok && call.ToolName == "web_search" && serverToolID.MatchString(call.ToolCallID) && (len(search.Results) > 0) != (search.ErrorCode != "")
}
