// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl

import (
	"slices"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider/wire"
)

// notFetched is why the model does not see a file.
const notFetched = "the provider of the model could not fetch it from its URL, or does not take it"

// urlFiles are the files of a prompt that the provider fetches, the oldest first.
type urlFiles struct {
	prompt fantasy.Prompt
	files  []urlFile
	// omitted are the indexes of the files that the next request omits: first those that are known to be refused, from
	// earlier calls or because the provider named them, then those that it is tried without.
	omitted []int
	known   int
	// tries is how many requests were made since the provider named one.
	tries int
}

// urlFile is a file, and the position of its part in the prompt.
type urlFile struct {
	fantasy.FilePart

	message, part int
	url           string
}

func (m *urlModel) filesOf(messages fantasy.Prompt) *urlFiles {
	f := &urlFiles{prompt: messages}
	for i := range messages {
		for j, part := range messages[i].Content {
			file, at, ok := prompt.URLOf(part)
			if !ok {
				continue
			}
			if m.isRefused(at) {
				f.omitted = append(f.omitted, len(f.files))
			}
			f.files = append(f.files, urlFile{file, i, j, at})
		}
	}
	f.known = len(f.omitted)
	return f
}

// request is the call without the files that are omitted.
func (f *urlFiles) request(call *fantasy.Call) *fantasy.Call {
	next := *call
	next.Prompt = slices.Clone(f.prompt)
	for _, i := range f.omitted {
		file := f.files[i]
		message := &next.Prompt[file.message]
		message.Content = slices.Clone(message.Content)
		message.Content[file.part] = prompt.Absent(file.Filename, file.MediaType, notFetched)
	}
	return &next
}

// omit decides what the next request omits, after one that was refused with the message. If it names URLs, it is these.
// Otherwise it is the oldest one, which has most probably expired, then the two oldest, and so on; then the newest
// alone, and last all.
func (f *urlFiles) omit(message string) {
	var rest []int
	f.omitted = f.omitted[:f.known]
	for i, file := range f.files {
		switch {
		case slices.Contains(f.omitted, i):
		case strings.Contains(message, file.url):
			f.omitted = append(f.omitted, i)
		default:
			rest = append(rest, i)
		}
	}
	if len(f.omitted) > f.known {
		f.known, f.tries = len(f.omitted), 0
		return
	}
	switch f.tries++; {
	case f.tries < len(rest):
		rest = rest[:f.tries]
	case f.tries == len(rest) && len(rest) > 1:
		rest = rest[len(rest)-1:]
	}
	f.omitted = append(f.omitted, rest...)
}

// warnings name the omitted files.
func (f *urlFiles) warnings() (warnings []fantasy.CallWarning) {
	for _, i := range f.omitted {
		warnings = append(warnings, wire.Unsupported("file", f.files[i].Filename+": "+notFetched))
	}
	return warnings
}
