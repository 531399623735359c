// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl

import (
	"slices"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/internal/generation/prompt"
)

// notFetched is why the model does not see a file that was handed to its provider.
const notFetched = "the provider of the model could not fetch it from its URL, or does not take it"

// handover is the prompt of one call, and what becomes of its files that the provider is to fetch.
type handover struct {
	prompt fantasy.Prompt
	// files in the order of the prompt, so that the oldest come first.
	files []handedFile
	// without are those that the next request goes without: what is known to be refused, and what it is tried without.
	without []int
	// known is how many of these are known from earlier calls, or because the provider named them.
	known int
	// tries is how many requests were made since the provider named one.
	tries int
	// remembered is how many were known before the call.
	remembered int
}

// handedFile is a file, and where its part is in the prompt.
type handedFile struct {
	fantasy.FilePart

	message, part int
	url           string
}

// handover is nil for a prompt without files that the provider is to fetch.
func (m *urlModel) handover(messages fantasy.Prompt) *handover {
	h := &handover{prompt: messages}
	for i := range messages {
		for j, part := range messages[i].Content {
			file, at, ok := prompt.URLOf(part)
			if !ok {
				continue
			}
			if m.refused.has(at) {
				h.without = append(h.without, len(h.files))
			}
			h.files = append(h.files, handedFile{file, i, j, at})
		}
	}
	if len(h.files) == 0 {
		return nil
	}
	h.known, h.remembered = len(h.without), len(h.without)
	return h
}

// handsAny reports whether the next request hands over a file.
func (h *handover) handsAny() bool { return len(h.without) < len(h.files) }

// request is the next request: without the files that are given up.
func (h *handover) request(call *fantasy.Call) fantasy.Call {
	next := *call
	next.Prompt = slices.Clone(h.prompt)
	for i, file := range h.files {
		message := &next.Prompt[file.message]
		if i == 0 || h.files[i-1].message != file.message {
			message.Content = slices.Clone(message.Content)
		}
		if slices.Contains(h.without, i) {
			message.Content[file.part] = prompt.Absent(file.Filename, file.MediaType, notFetched)
		}
	}
	return next
}

// giveUp says what the next request goes without, after one that was refused in these words. If they name URLs, it is
// these. Else it is the oldest one, which has most probably expired, then the two oldest, and so on; then the newest
// alone, and last all.
func (h *handover) giveUp(said string) {
	var rest []int
	h.without = h.without[:h.known]
	for i, file := range h.files {
		switch {
		case slices.Contains(h.without, i):
		case strings.Contains(said, file.url):
			h.without = append(h.without, i)
		default:
			rest = append(rest, i)
		}
	}
	if len(h.without) > h.known {
		h.known, h.tries = len(h.without), 0
		return
	}
	switch h.tries++; {
	case h.tries < len(rest):
		h.without = append(h.without, rest[:h.tries]...)
	case h.tries == len(rest) && len(rest) > 1:
		h.without = append(h.without, rest[len(rest)-1])
	default:
		h.without = append(h.without, rest...)
	}
}

// givenUp are the URLs that this call has found to be refused.
func (h *handover) givenUp() (urls []string) {
	for _, i := range h.without[h.remembered:] {
		urls = append(urls, h.files[i].url)
	}
	return urls
}

// warnings tell people what the model does not see.
func (h *handover) warnings() (all []fantasy.CallWarning) {
	for _, i := range h.without {
		all = append(all, fantasy.CallWarning{
			Type: fantasy.CallWarningTypeUnsupportedSetting, Setting: "file", Details: h.files[i].Filename + ": " + notFetched,
		})
	}
	return all
}

// warn hands the warnings on, and is false if no more is wanted.
func (h *handover) warn(yield func(fantasy.StreamPart) bool) bool {
	warnings := h.warnings()
	return len(warnings) == 0 || yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeWarnings, Warnings: warnings})
}
