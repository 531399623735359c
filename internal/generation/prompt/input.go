// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prompt converts a chat to the prompt for a provider. It is pure, and repairs every history: the prompt meets
// the requirements of all providers. It has at most one system message, the first; then a User message follows; a User
// or Tool message is last. The results of calls follow their message, each result has a call, ids are valid and unique,
// and no text is empty.
//
// Repairs are deterministic and go from the front, so that a longer history begins with the prompt of a shorter one and
// providers' caches hit.
package prompt

import (
	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
)

// Input is the content of a prompt. SystemPrompt, Instructions, Skills, the text for sub-chats, and Extra are the
// blocks of the system message, in this order; blank ones are omitted.
type Input struct {
	SystemPrompt string
	// Instructions are the texts of Chat.spec.instructionsFrom.
	Instructions []string
	// Skills is the index of the skills of Chat.spec.skillsFrom.
	Skills string
	// SubChat is true for a chat that has a parent.
	SubChat bool
	// Extra are further blocks, such as guidance about a tool. What changes often is last, for providers' caches.
	Extra []string
	// History is the part of the history that the model sees. It can begin anywhere, such as with a summary. A message of
	// another role than Assistant or Tool becomes a User message: providers take system messages only at the front.
	History []v1beta1.ChatMessage
	// GoOn tells the model to continue after an empty reply.
	GoOn bool
	// CallsCanceledReason is why calls of the newest reply have no result, if no message follows it yet.
	CallsCanceledReason v1beta1.CallsCanceledReason
	// ResultBytes limits each result of a tool; 0: no limit. Longer ones are cut in the middle. It depends only on the
	// model, so that a longer history begins with the prompt of a shorter one.
	ResultBytes int
	// Files are the contents of the files that are not in the history itself.
	Files   map[FileKey]File
	Dialect Dialect
}

// Dialect has the requirements of a provider that differ from those of others.
type Dialect struct {
	// Origin of the messages that this provider reads back as its own; see Origin.
	Origin string
	// Reads reports whether the metadata are of the provider's protocol. nil: it reads none.
	Reads func(fantasy.ProviderOptions) bool
	// JoinTexts joins all texts of an Assistant message before its calls.
	JoinTexts bool
	// Alternate joins adjacent messages of the same role, and their texts.
	Alternate bool
	// ReplyBetween puts a reply between results and a User message, where an interrupted turn has none.
	ReplyBetween bool
	// MaxCallID is the maximum length of the id of a call; 0: 64.
	MaxCallID int
	// HashedIDs is the length of the ids that a provider takes whose ids are letters and digits alone, and all have that
	// length; 0: they are other ones.
	HashedIDs int
	// KeepsID reports whether the provider takes an id unchanged; own: it is the provider's. nil: it takes letters,
	// digits, "_" and "-" only.
	KeepsID func(id string, own bool) bool
	// RepeatsIDs is true if the provider takes a reused id of its own again, because each result follows its call.
	RepeatsIDs bool
	// Images and PDFs report whether the provider takes files of these kinds.
	Images, PDFs bool
	// ImageSides limit the sides of images; the zero value: nothing does.
	ImageSides ImageSides
	// FileURLs are the media types of the files that the provider fetches from URLs.
	FileURLs []string
	// CacheMark goes on the messages up to which the provider caches the prompt: the system message and the last two.
	// nil: it needs no marks.
	CacheMark fantasy.ProviderOptions
	// ReasoningLeads is true if reasoning goes back only before its outcome, and is omitted with an omitted call.
	ReasoningLeads bool
	// TextsSigned is true if the signature of a text goes before it, with an empty reasoning.
	TextsSigned bool
	// CallMark goes before the first unsigned call of a reply, with an empty reasoning. nil: none needs it.
	CallMark fantasy.ProviderOptions
	// Replays reports whether the provider takes back a call of its own tools; result is nil in a paused reply. nil: it
	// takes none.
	Replays func(call fantasy.ToolCallPart, result *fantasy.ToolResultPart) bool
}

// ImageSides are the most pixels that a side of an image has, and the fewer of each image in a prompt with more than
// Few.
type ImageSides struct{ Most, Few, MostOfMany int }

// Origin identifies the providers that can read a message back as their own. Anthropic's signatures are valid wherever
// its models run. With OpenAI, whose encrypted reasoning is for one model, and with gateways, the origin includes the
// model.
func Origin(provider v1beta1.ModelProvider, model string) string {
	switch provider {
	case v1beta1.ProviderAnthropic, v1beta1.ProviderBedrock:
		return string(v1beta1.ProviderAnthropic)
	case v1beta1.ProviderOpenAICompatible, v1beta1.ProviderOpenRouter, v1beta1.ProviderVercel, v1beta1.ProviderOpenAI,
		v1beta1.ProviderAzure:
		return string(provider) + "/" + model
	}
	return string(provider)
}

// Build returns the prompt.
func Build(in Input) []fantasy.Message {
	in.History = joinPaused(Flatten(in.History), in.Dialect)
	b := &builder{Input: in, paired: pair(in.History, in.Dialect), files: fileBudget(in.History, in.Files, in.Dialect)}
	for i := range in.History {
		b.message(i, &in.History[i])
	}
	last := len(in.History) - 1
	if in.GoOn {
		b.messages = append(b.messages, message(fantasy.MessageRoleUser, fantasy.TextPart{Text: goOn}))
	}
	messages := shape(b.messages, in.Dialect, last >= 0 && isPaused(&in.History[last], in.Dialect))
	if system := in.system(); system != "" {
		messages = append([]fantasy.Message{message(fantasy.MessageRoleSystem, fantasy.TextPart{Text: system})}, messages...)
	}
	return mark(messages, in.Dialect.CacheMark)
}

func message(role fantasy.MessageRole, content ...fantasy.MessagePart) fantasy.Message {
	return fantasy.Message{Role: role, Content: content}
}

// Texts are the texts of a prompt that an error could quote, including the URLs of files.
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

// Bytes is the size of a prompt's texts and files.
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
