// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
)

const (
	// MaxFileBytes is the largest file that a model reads: what Anthropic takes as one image, 5 MB of base64.
	MaxFileBytes = 3584 << 10
	// MaxFilesBytes is how much of files one prompt holds; the oldest ones are left out.
	MaxFilesBytes = 12 << 20
	// maxInlined is how much of a text file the model reads.
	maxInlined = 128 << 10
)

// FileKey names a file by the message and the index of its part.
type FileKey struct {
	Message string
	Part    int
}

// File is the content of a file, or else why there is none, as the model is told.
type File struct {
	Data    []byte
	Problem string
	// URL is where the provider may fetch the file itself, if it takes a URL for one of its type. Else the Problem stands.
	URL string
}

// noRoom is the problem of a file that newer ones leave no room for.
const noRoom = "newer files took the room"

// fileBudget are the files that the prompt has room for, newest first, those in the messages included.
func fileBudget(history []v1alpha1.ChatMessage, fetched map[FileKey]File, d Dialect) map[FileKey]File {
	files, left, urls := map[FileKey]File{}, MaxFilesBytes, MaxFileURLs
	for i := range slices.Backward(history) {
		for j := range history[i].Spec.Parts {
			file := history[i].Spec.Parts[j].File
			if file == nil {
				continue
			}
			key := FileKey{history[i].Name, j}
			f := contentOf(file, key, fetched)
			switch {
			case f.URL != "" && !slices.Contains(d.FileURLs, file.MediaType):
				f = File{Problem: f.Problem + ", and the provider of the model fetches no files of this type itself"}
			case f.URL != "":
				if urls--; urls < 0 {
					f = File{Problem: noRoom}
				}
			case len(f.Data) > MaxFileBytes:
				f = File{Problem: "it is larger than 3.5 MiB"}
			case len(f.Data) > left:
				f = File{Problem: noRoom}
			}
			left -= len(f.Data)
			files[key] = f
		}
	}
	return files
}

func contentOf(file *v1alpha1.MessageFile, key FileKey, fetched map[FileKey]File) File {
	if file.ConfigMapKeyRef == nil && file.URL == "" {
		return InPlace(file)
	}
	if f, ok := fetched[key]; ok {
		return f
	}
	return File{Problem: "it was not read"}
}

// InPlace is the content that a message itself holds of a file.
func InPlace(file *v1alpha1.MessageFile) File {
	content, err := file.Content()
	if err != nil {
		return File{Problem: "its data is not base64"}
	}
	return File{Data: content}
}

// file is what the model sees of a file: the file itself if the provider takes it,
// its text, or why there is nothing to see.
func (b *builder) file(key FileKey, file *v1alpha1.MessageFile) fantasy.MessagePart {
	f := b.files[key]
	if f.URL != "" {
		return handed(file, f.URL)
	}
	if f.Problem == "" && len(f.Data) == 0 {
		f.Problem = "it is empty"
	}
	if f.Problem != "" {
		return absent(file, f.Problem)
	}
	kind := kindOf(f.Data)
	switch {
	case textual(file.MediaType):
		return inlined(file, f.Data)
	case strings.HasPrefix(file.MediaType, "image/"):
		return b.binary(file, f.Data, kind, b.Dialect.Images && strings.HasPrefix(kind, "image/"))
	case file.MediaType == pdf:
		return b.binary(file, f.Data, kind, b.Dialect.PDFs && kind == pdf)
	}
	return absent(file, "the model takes no files of this type")
}

// binary gives the type that the content has: providers refuse an image of another type than was said.
func (b *builder) binary(file *v1alpha1.MessageFile, data []byte, kind string, taken bool) fantasy.MessagePart {
	switch {
	case taken:
		return fantasy.FilePart{Filename: clean(file.Name), Data: data, MediaType: kind}
	case kind == "":
		return absent(file, "its content is not what its type says")
	}
	return absent(file, "the model takes no files of this type")
}

func absent(file *v1alpha1.MessageFile, why string) fantasy.TextPart {
	return Absent(file.Name, file.MediaType, why)
}

// Absent stands in place of a file that the model does not see, and says why.
func Absent(name, mediaType, why string) fantasy.TextPart {
	return fantasy.TextPart{Text: fmt.Sprintf("[File %q (%s) cannot be shown: %s.]", clean(name), clean(mediaType),
		clean(why))}
}

// inlined is a text file between fences that its text does not have.
func inlined(file *v1alpha1.MessageFile, data []byte) fantasy.TextPart {
	text := clean(string(data))
	note := ""
	if kept := clip.Bytes(text, maxInlined); kept != text {
		text, note = kept, ", cut after 128 KiB"
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fantasy.TextPart{Text: fmt.Sprintf("File %q (%s%s):\n%s\n%s\n%s", clean(file.Name), clean(file.MediaType), note,
		fence, strings.TrimSuffix(text, "\n"), fence)}
}

// texts are media types that are text by another name.
var texts = []string{
	"application/json", "application/x-ndjson", "application/yaml", "application/x-yaml", "application/toml",
	"application/xml",
	"application/javascript", "application/x-sh", "application/sql", "image/svg+xml",
}

func textual(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "+json") ||
		strings.HasSuffix(mediaType, "+xml") ||
		strings.HasSuffix(mediaType, "+yaml") || slices.Contains(texts, mediaType)
}

const pdf = "application/pdf"

// kindOf is the type that the content begins as; empty if it is none that any provider takes.
func kindOf(data []byte) string {
	for _, magic := range []struct{ begins, kind string }{
		{"\x89PNG\r\n\x1a\n", "image/png"}, {"\xff\xd8\xff", "image/jpeg"}, {"GIF87a", "image/gif"}, {"GIF89a", "image/gif"},
		{"%PDF-", pdf},
	} {
		if bytes.HasPrefix(data, []byte(magic.begins)) {
			return magic.kind
		}
	}
	if len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP" {
		return "image/webp"
	}
	return ""
}
