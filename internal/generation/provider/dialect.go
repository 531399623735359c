// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/base64"
	"regexp"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider/fileurl"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/gemini"
	"parley.dev/parley/internal/generation/provider/wire"
)

// maxChatCallID is the longest id of a call in OpenAI's chat protocol, from its refusal: "string too long. Expected a
// string with maximum length 40". The other protocols take 64.
const maxChatCallID = 40

// imageSides are Anthropic's, from its page on vision: it refuses a request with a larger image.
var imageSides = prompt.ImageSides{Most: 8000, Few: 20, MostOfMany: 2000}

// DialectOf is what the provider of a configuration wants of a prompt.
func DialectOf(spec *v1beta1.ChatModelConfigSpec) prompt.Dialect {
	d := prompt.Dialect{
		Origin: prompt.Origin(spec.Provider, spec.Model), Images: true, PDFs: true, FileURLs: fileurl.MediaTypes(spec),
		Reads: func(o fantasy.ProviderOptions) bool { return wire.IsOf(o, finish.ProtocolOf(spec)) },
	}
	if spec.Provider != v1beta1.ProviderAnthropic && spec.Provider != v1beta1.ProviderBedrock {
		d.KeepsID = keepsID(spec.Model)
	}
	switch spec.Provider {
	case v1beta1.ProviderAnthropic, v1beta1.ProviderBedrock:
		d.CacheMark = wire.CacheMark()
		d.ImageSides = imageSides
		if spec.Provider == v1beta1.ProviderAnthropic { // Bedrock has no such tools, and documents no blocks of them.
			d.Replays = replaysTools
		}
	case v1beta1.ProviderGoogle:
		d.Alternate, d.TextsSigned = true, true
		if gemini.IsGemini3(spec.Model) {
			d.CallMark = (&wire.State{Signature: unsigned}).With()
			d.Replays = geminiReplays(spec)
		}
	case v1beta1.ProviderOpenAI, v1beta1.ProviderAzure:
		if spec.Transport == v1beta1.TransportResponses {
			d.ReasoningLeads = true
			break
		}
		d.JoinTexts, d.MaxCallID, d.RepeatsIDs = true, maxChatCallID, true
	case v1beta1.ProviderOpenAICompatible:
		// Few of these servers take PDFs. Their templates often want users and replies to alternate, whatever tools
		// come between.
		d.JoinTexts, d.Alternate, d.ReplyBetween, d.MaxCallID, d.PDFs = true, true, true, maxChatCallID, false
		d.RepeatsIDs = true
	default:
		d.JoinTexts, d.MaxCallID, d.RepeatsIDs = true, maxChatCallID, true
	}
	return forMistral(d, spec)
}

// forMistral adds what Mistral's models want, which refuse calls with other ids: "must be a-z, A-Z, 0-9, with a length
// of 9".
func forMistral(d prompt.Dialect, spec *v1beta1.ChatModelConfigSpec) prompt.Dialect {
	if spec.Provider == v1beta1.ProviderOpenAICompatible && ofMistral.MatchString(spec.Model) {
		d.HashedIDs, d.KeepsID = 9, isMistralID
	}
	return d
}

var (
	// readsIDs are the models that read the ids of calls in the history: Kimi, by the guidance for its tool calls.
	readsIDs = regexp.MustCompile(`(?i)kimi`)
	// kimiID is how Kimi's ids look.
	kimiID = regexp.MustCompile(`^functions\.[A-Za-z0-9_-]+:\d+$`)
)

var (
	// ofMistral are the models of Mistral.
	ofMistral   = regexp.MustCompile(`(?i)(?:mis|minis|magis|devs|codes|mix|pix|vox)tral`)
	mistralForm = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
)

func isMistralID(id string, _ bool) bool { return mistralForm.MatchString(id) }

// keepsID lets a provider have its own ids as it gave them, and a model that reads ids also those of its form that came
// from elsewhere. Others' could end at a provider that takes letters, digits, "_" and "-" only: gateways hand them on.
func keepsID(model string) func(string, bool) bool {
	reads := readsIDs.MatchString(model)
	return func(id string, own bool) bool { return own && visible(id) || reads && kimiID.MatchString(id) }
}

// visible reports whether the text has visible ASCII characters only.
func visible(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return text != ""
}

// unsigned stands for the signature of a call that has none: from Gemini 3 on, Google refuses a call that another model
// made, unless it says in this word, which Google documents, that there is none to check. It is base64, as all are.
var unsigned = base64.StdEncoding.EncodeToString([]byte("skip_thought_signature_validator"))

// serverToolID is the id of a call of Anthropic's own tools.
var serverToolID = regexp.MustCompile(`^srvtoolu_[a-zA-Z0-9_]+$`)

// replaysTools reports whether Anthropic takes the call of one of its own tools and its result back: as they came.
func replaysTools(call fantasy.ToolCallPart, result *fantasy.ToolResultPart) bool {
	known := call.ToolName == wire.WebSearch || call.ToolName == wire.CodeExecution
	return known && serverToolID.MatchString(call.ToolCallID) && (result == nil || wire.StateOf(result).Item != nil)
}

// geminiReplays is which calls of Google's own tools go back. Vertex AI has no parts for them.
func geminiReplays(spec *v1beta1.ChatModelConfigSpec) func(fantasy.ToolCallPart, *fantasy.ToolResultPart) bool {
	if spec.VertexAI != nil {
		return nil
	}
	return replaysItems
}

// replaysItems reports whether a call of the provider's own tools and its result are there as they came.
func replaysItems(call fantasy.ToolCallPart, result *fantasy.ToolResultPart) bool {
	return result != nil && wire.StateOf(call).Item != nil && wire.StateOf(*result).Item != nil
}
