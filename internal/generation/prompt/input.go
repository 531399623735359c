// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prompt turns a chat into what a provider reads. It is pure, and it always succeeds: whatever the history
// looks like, the prompt obeys what every provider demands. It has at most one system message, the first; then a user
// speaks; a user or the results of calls come last. Each call is answered right after the message that made it, each
// result answers a call, ids are valid and unique, and no text is empty.
//
// What is mended is mended the same way each time, and from the front, so that a longer history begins with the prompt
// of a shorter one and providers' caches hit.
package prompt

import (
	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
)

// Input is everything that a prompt is made of.
type Input struct {
	// SystemPrompt, Instructions, Skills, a standing text for sub-chats, and Extra are the blocks of the system message,
	// in this order, each after a blank line. Blank ones are left out.
	SystemPrompt string
	// Instructions are the texts of Chat.spec.instructionsFrom, in its order.
	Instructions []string
	// Skills is the index of the skills of Chat.spec.skillsFrom.
	Skills string
	// SubChat is true for a chat that has a parent.
	SubChat bool
	// Extra are further blocks, such as guidance about a tool. What changes most often goes last, for caches' sake.
	Extra []string
	// History is what the model is to see of the history, oldest message first. It can begin anywhere, such as with a
	// summary of what came before. A message that is neither a reply nor results is told as a user's: providers take
	// system messages at the front alone.
	History []v1alpha1.ChatMessage
	// GoOn tells the model to continue, because its last reply was empty.
	GoOn bool
	// CallsGivenUp is why calls of the newest reply have no result, if nothing follows it yet; empty: none was given up.
	// Of other replies, what follows them says it.
	CallsGivenUp v1alpha1.CallsGivenUp
	// ResultBytes is the most that the model reads of each result of a tool, whoever ran it; what is longer is cut in its
	// middle, and says so. 0: all. It follows from the model alone, so that the prompt of a longer history begins with
	// that of a shorter one.
	ResultBytes int
	// Files are the contents of the files that are not in the history itself.
	Files map[FileKey]File
	// Dialect is what the provider wants.
	Dialect Dialect
}

// Dialect is what a provider wants of a prompt, besides what all of them want.
type Dialect struct {
	// Origin of the messages that this provider reads back as its own, reasoning and calls of its own tools included; see
	// Origin.
	Origin string
	// Reads reports whether the provider's protocol is the one that metadata came by. nil: it reads none.
	Reads func(fantasy.ProviderOptions) bool
	// JoinTexts makes one text of all texts of an Assistant message, which then stands before its calls.
	JoinTexts bool
	// Alternate joins messages of the same role that follow each other, and their texts.
	Alternate bool
	// ReplyBetween puts a reply between results and a user's next words: an interrupted turn has none.
	ReplyBetween bool
	// MaxCallID is the greatest length of the id of a call; 0: 64.
	MaxCallID int
	// KeepsID reports whether the provider takes the id of a call as it came, own: from itself. nil: it takes letters,
	// digits, "_" and "-" only.
	KeepsID func(id string, own bool) bool
	// RepeatsIDs is true where a provider that has used an id again takes it again: each result follows its call.
	RepeatsIDs bool
	// Images and PDFs report whether the provider takes files of these kinds.
	Images, PDFs bool
	// FileURLs are the media types of the files that the provider fetches itself if it is handed a URL. nil: none.
	FileURLs []string
	// CacheMark is set on the messages up to which the provider is to keep the prompt: the system message and the last
	// two. nil: the provider keeps what it wants by itself.
	CacheMark fantasy.ProviderOptions
	// ReasoningLeads is true where a reasoning goes back only before what it led to,
	// and is left out with a call that is not told.
	ReasoningLeads bool
	// TextsSigned is true where the signature of a text goes, with an empty reasoning, before the text.
	TextsSigned bool
	// CallMark goes, with an empty reasoning, before the first call of a reply that this provider has not signed. nil:
	// none needs it.
	CallMark fantasy.ProviderOptions
	// Replays reports whether the provider takes back a call of its own tools with its result, with the metadata that they
	// came with; a nil result is of a call that the provider has paused. nil: it takes none.
	Replays func(call fantasy.ToolCallPart, result *fantasy.ToolResultPart) bool
}

// Origin names who wrote a message, as far as it matters for whether a provider can read it back as its own.
// Anthropic's signatures are good wherever Anthropic's models run. Behind providers of many makers' models, the model
// tells, and with OpenAI, whose encrypted reasoning is for the model that it came from.
func Origin(provider v1alpha1.ModelProvider, model string) string {
	switch provider {
	case v1alpha1.ProviderAnthropic, v1alpha1.ProviderBedrock:
		return string(v1alpha1.ProviderAnthropic)
	case v1alpha1.ProviderOpenAICompatible, v1alpha1.ProviderOpenRouter, v1alpha1.ProviderVercel, v1alpha1.ProviderOpenAI,
		v1alpha1.ProviderAzure:
		return string(provider) + "/" + model
	}
	return string(provider)
}

// Build returns the prompt.
func Build(in Input) []fantasy.Message {
	in.History = joined(told(in.History), in.Dialect)
	b := &builder{Input: in, paired: pair(in.History, in.Dialect), files: fileBudget(in.History, in.Files, in.Dialect)}
	for i := range in.History {
		b.message(i, &in.History[i])
	}
	last := len(in.History) - 1
	if in.GoOn {
		b.messages = append(b.messages, message(fantasy.MessageRoleUser, fantasy.TextPart{Text: goOn}))
	}
	messages := shape(b.messages, in.Dialect, last >= 0 && continues(&in.History[last], in.Dialect))
	if system := in.system(); system != "" {
		messages = append([]fantasy.Message{message(fantasy.MessageRoleSystem, fantasy.TextPart{Text: system})}, messages...)
	}
	return mark(messages, in.Dialect.CacheMark)
}

func message(role fantasy.MessageRole, content ...fantasy.MessagePart) fantasy.Message {
	return fantasy.Message{Role: role, Content: content}
}

// Texts are the texts of a prompt, URLs of files included, such as a provider could quote.
func Texts(messages []fantasy.Message) []string {
	var texts []string
	for _, m := range messages {
		for _, part := range m.Content {
			switch part := part.(type) {
			case fantasy.TextPart:
				texts = append(texts, part.Text)
			case fantasy.ReasoningPart:
				texts = append(texts, part.Text)
			case fantasy.ToolCallPart:
				texts = append(texts, part.Input)
			case fantasy.ToolResultPart:
				texts = append(texts, outputOf(part))
			case fantasy.FilePart:
				if _, from, ok := URLOf(part); ok {
					texts = append(texts, from)
				}
			}
		}
	}
	return texts
}

// Bytes is how large a prompt is: its texts and files, without names and the like.
func Bytes(messages []fantasy.Message) (n int) {
	for _, text := range Texts(messages) {
		n += len(text)
	}
	for _, m := range messages {
		for _, part := range m.Content {
			if file, ok := part.(fantasy.FilePart); ok {
				n += len(file.Data)
			}
		}
	}
	return n
}

func outputOf(result fantasy.ToolResultPart) string {
	switch out := result.Output.(type) {
	case fantasy.ToolResultOutputContentText:
		return out.Text
	case fantasy.ToolResultOutputContentError:
		return out.Error.Error()
	}
	return ""
}

// mark sets the mark on the system message and on the last two messages.
func mark(messages []fantasy.Message, cacheMark fantasy.ProviderOptions) []fantasy.Message {
	for i := range messages {
		if cacheMark != nil && (messages[i].Role == fantasy.MessageRoleSystem || i >= len(messages)-2) {
			messages[i].ProviderOptions = cacheMark
		}
	}
	return messages
}
