// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/test/kit/check"
)

const (
	png = "\x89PNG\r\n\x1a\nrest"
	pdf = "%PDF-1.7\nrest"
)

func file(f v1alpha1.MessageFile) v1alpha1.MessagePart {
	return v1alpha1.MessagePart{Type: v1alpha1.PartFile, File: &f}
}

func inPlace(name, mediaType, data string) v1alpha1.MessagePart {
	return file(v1alpha1.MessageFile{Name: name, MediaType: mediaType,
		Data: base64.StdEncoding.EncodeToString([]byte(data))})
}

func elsewhere(name, mediaType string) v1alpha1.MessagePart {
	return file(v1alpha1.MessageFile{Name: name, MediaType: mediaType, URL: "https://files.example.com/x"})
}

func TestFilesAreShownOrSaidNotToBe(t *testing.T) {
	claude, compatible := dialect(v1alpha1.ProviderAnthropic, "m"), dialect(v1alpha1.ProviderOpenAICompatible, "m")
	claude.CacheMark = nil
	for name, c := range map[string]struct {
		dialect prompt.Dialect
		part    v1alpha1.MessagePart
		fetched prompt.File
		want    string
	}{
		"an image": {claude, inPlace("a.png", "image/png", png), prompt.File{},
			"<a.png image/png 12>"},
		"an image of another type than was said": {claude, inPlace("a.png", "image/jpeg", png), prompt.File{},
			"<a.png image/png 12>"},
		"a WebP image": {claude, inPlace("a.webp", "image/webp", "RIFF1234WEBPrest"), prompt.File{},
			"<a.webp image/webp 16>"},
		"an image that is none": {claude, inPlace("a.png", "image/png", "file-123"), prompt.File{},
			`[File "a.png" (image/png) cannot be shown: its content is not what its type says.]`},
		"a PDF": {claude, inPlace("a.pdf", "application/pdf", pdf), prompt.File{},
			"<a.pdf application/pdf 13>"},
		"a PDF that is none": {claude, inPlace("a.pdf", "application/pdf", "file-123"), prompt.File{},
			`[File "a.pdf" (application/pdf) cannot be shown: its content is not what its type says.]`},
		"a PDF where none is taken": {compatible, inPlace("a.pdf", "application/pdf", pdf), prompt.File{},
			`[File "a.pdf" (application/pdf) cannot be shown: the model takes no files of this type.]`},
		"a type that nobody takes": {claude, inPlace("a.zip", "application/zip", "PK"), prompt.File{},
			`[File "a.zip" (application/zip) cannot be shown: the model takes no files of this type.]`},
		"an image that nobody takes": {claude, inPlace("a.tiff", "image/tiff", "II*\x00"), prompt.File{},
			`[File "a.tiff" (image/tiff) cannot be shown: its content is not what its type says.]`},
		"a text": {claude, inPlace("a.txt", "text/plain", "one\ntwo\n"), prompt.File{},
			"File \"a.txt\" (text/plain):\n```\none\ntwo\n```"},
		"a text with fences": {claude, inPlace("a.md", "text/markdown", "```go\n````\n"), prompt.File{},
			"File \"a.md\" (text/markdown):\n`````\n```go\n````\n`````"},
		"a text by another name": {claude, inPlace("a.json", "application/json", "{}"), prompt.File{},
			"File \"a.json\" (application/json):\n```\n{}\n```"},
		"a text that is none": {claude, inPlace("a.txt", "text/plain", "a\x00\xff"), prompt.File{},
			"File \"a.txt\" (text/plain):\n```\na\uFFFD\uFFFD\n```"},
		"a file that is no base64": {claude,
			file(v1alpha1.MessageFile{Name: "a.png", MediaType: "image/png", Data: "a b"}), prompt.File{},
			`[File "a.png" (image/png) cannot be shown: its data is not base64.]`},
		"an empty file": {claude, inPlace("a.txt", "text/plain", ""), prompt.File{},
			`[File "a.txt" (text/plain) cannot be shown: it is empty.]`},
		"a file from elsewhere": {claude, elsewhere("a.png", "image/png"), prompt.File{Data: []byte(png)},
			"<a.png image/png 12>"},
		"a file that could not be had": {claude, elsewhere("a.png", "image/png"),
			prompt.File{Problem: "ConfigMap a does not exist"},
			`[File "a.png" (image/png) cannot be shown: ConfigMap a does not exist.]`},
		"a file that is too large": {claude, elsewhere("a.png", "image/png"),
			prompt.File{Data: append([]byte(png), make([]byte, prompt.MaxFileBytes)...)},
			`[File "a.png" (image/png) cannot be shown: it is larger than 3.5 MiB.]`},
	} {
		t.Run(name, func(t *testing.T) {
			in := prompt.Input{History: []v1alpha1.ChatMessage{said(v1alpha1.RoleUser, text("see"), c.part)}, Dialect: c.dialect}
			in.History[0].Name = "m"
			in.Files = map[prompt.FileKey]prompt.File{{Message: "m", Part: 1}: c.fetched}
			want := "user see " + c.want
			if c.dialect.Alternate {
				want = "user see\n\n" + c.want
			}
			check.Equal(t, "the prompt", want, outline(prompt.Build(in)))
		})
	}
}

func TestFilesOfResultsAreShownNotOfReplies(t *testing.T) {
	unread := said(v1alpha1.RoleUser, elsewhere("b.png", "image/png"))
	unread.Name = "unread"
	told{prompt.Dialect{Images: true}, []v1alpha1.ChatMessage{user("q"), assistant(text("x"),
		inPlace("a.png", "image/png", png)), tool(inPlace("a.png", "image/png", png)), unread},
		"user q | assistant x | user <a.png image/png 12> | user " +
			`[File "b.png" (image/png) cannot be shown: it was not read.]`}.check(t)
}

func TestALongTextIsCutVisibly(t *testing.T) {
	in := prompt.Input{History: []v1alpha1.ChatMessage{said(v1alpha1.RoleUser,
		inPlace("a.txt", "text/plain", strings.Repeat("é", 100000)))}}
	got := outline(prompt.Build(in))
	check.Equal(t, "beginning, count", []any{true, 64 << 10},
		[]any{strings.HasPrefix(got, `user File "a.txt" (text/plain, cut after 128 KiB):`), strings.Count(got, "é")})
	check.Lacks(t, got, "\uFFFD")
}

func TestTheNewestFilesTakeTheRoom(t *testing.T) {
	in := prompt.Input{Files: map[prompt.FileKey]prompt.File{}, Dialect: prompt.Dialect{Images: true}}
	content := append([]byte(png), bytes.Repeat([]byte{1}, 3<<20)...)
	for i := range 5 {
		m := said(v1alpha1.RoleUser, elsewhere("a.png", "image/png"))
		m.Name = fmt.Sprint(i)
		in.History = append(in.History, m)
		in.Files[prompt.FileKey{Message: m.Name}] = prompt.File{Data: content}
	}
	want := []string{"newer files took the room", "newer files took the room", "<a.png", "<a.png", "<a.png"}
	for i, line := range strings.Split(outline(prompt.Build(in)), " | ") {
		check.Contains(t, line, want[i])
	}
}
