// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	stdpng "image/png"
	"slices"
	"strings"
	"testing"

	"charm.land/fantasy"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/test/kit/check"
)

const (
	png = "\x89PNG\r\n\x1a\nrest"
	pdf = "%PDF-1.7\nrest"
)

func file(f v1beta1.MessageFile) v1beta1.MessagePart {
	return v1beta1.MessagePart{Type: v1beta1.PartFile, File: &f}
}

func inPlace(name, mediaType, data string) v1beta1.MessagePart {
	return file(v1beta1.MessageFile{Name: name, MediaType: mediaType,
		Data: base64.StdEncoding.EncodeToString([]byte(data))})
}

func elsewhere(name, mediaType string) v1beta1.MessagePart {
	return file(v1beta1.MessageFile{Name: name, MediaType: mediaType, URL: "https://files.example.com/x"})
}

func TestFilesAreShownOrSaidNotToBe(t *testing.T) {
	claude, compatible := dialect(v1beta1.ProviderAnthropic, "m"), dialect(v1beta1.ProviderOpenAICompatible, "m")
	claude.CacheMark = nil
	for name, c := range map[string]struct {
		dialect prompt.Dialect
		part    v1beta1.MessagePart
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
			file(v1beta1.MessageFile{Name: "a.png", MediaType: "image/png", Data: "a b"}), prompt.File{},
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
			in := prompt.Input{History: []v1beta1.ChatMessage{said(v1beta1.RoleUser, text("see"), c.part)}, Dialect: c.dialect}
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

// pngOf is a PNG of a size.
func pngOf(t *testing.T, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	check.OK(t, stdpng.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))))
	return b.String()
}

const (
	webP  = "RIFF1234WEBP"
	lossy = webP + "VP8 1234" + "abc\x9d\x01\x2a" + "\x41\x1f\x01\x00"            // 8001 by 1
	exact = webP + "VP8L1234" + "\x2f" + "\x40\x1f\x00\x00" + "12345678"          // 8001 by 1
	more  = webP + "VP8X1234" + "abcd" + "\x00\x00\x00" + "\x40\x1f\x00" + "1234" // 1 by 8001
)

func TestLargeImagesAreOmittedForAnthropic(t *testing.T) {
	const refused = "cannot be shown: it has a side of"
	large, wide, fine := pngOf(t, 1, 8001), pngOf(t, 2001, 1), pngOf(t, 2000, 1)
	for name, c := range map[string]struct {
		provider v1beta1.ModelProvider
		images   []string
		omitted  int
	}{
		"one that is too large": {v1beta1.ProviderAnthropic, []string{large, wide, fine}, 1},
		"with Bedrock":          {v1beta1.ProviderBedrock, []string{large}, 1},
		"with another provider": {v1beta1.ProviderOpenAI, []string{large}, 0},
		"WebP":                  {v1beta1.ProviderAnthropic, []string{lossy, exact, more, webP + "VP8 "}, 3},
		"many images":           {v1beta1.ProviderAnthropic, append(slices.Repeat([]string{fine}, 20), wide), 1},
		"almost as many":        {v1beta1.ProviderAnthropic, append(slices.Repeat([]string{fine}, 19), wide), 0},
	} {
		t.Run(name, func(t *testing.T) {
			var parts []v1beta1.MessagePart
			for _, data := range c.images {
				parts = append(parts, inPlace("a", "image/png", data))
			}
			in := prompt.Input{History: []v1beta1.ChatMessage{said(v1beta1.RoleUser, parts...)},
				Dialect: dialect(c.provider, "m")}
			check.Equal(t, "images that are omitted", c.omitted, strings.Count(outline(prompt.Build(in)), refused))
		})
	}
}

func TestFilesOfResultsAreShownNotOfReplies(t *testing.T) {
	unread := said(v1beta1.RoleUser, elsewhere("b.png", "image/png"))
	unread.Name = "unread"
	told{prompt.Dialect{Images: true}, []v1beta1.ChatMessage{user("q"), assistant(text("x"),
		inPlace("a.png", "image/png", png)), tool(inPlace("a.png", "image/png", png)), unread},
		"user q | assistant x | user <a.png image/png 12> | user " +
			`[File "b.png" (image/png) cannot be shown: it was not read.]`}.check(t)
}

func TestALongTextIsCutVisibly(t *testing.T) {
	in := prompt.Input{History: []v1beta1.ChatMessage{said(v1beta1.RoleUser,
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
		m := said(v1beta1.RoleUser, elsewhere("a.png", "image/png"))
		m.Name = fmt.Sprint(i)
		in.History = append(in.History, m)
		in.Files[prompt.FileKey{Message: m.Name}] = prompt.File{Data: content}
	}
	want := []string{"newer files took the room", "newer files took the room", "<a.png", "<a.png", "<a.png"}
	for i, line := range strings.Split(outline(prompt.Build(in)), " | ") {
		check.Contains(t, line, want[i])
	}
}

func TestOnlyPublicURLsAreHandedOn(t *testing.T) {
	for _, raw := range []string{
		"https://example.com/a.png", "https://EXAMPLE.com./a", "https://a.b.example.co.uk:8443/x?sig=1#f",
		"https://xn--bcher-kva.example/a", "https://bucket_1.s3.amazonaws.com/a",
		"https://8.8.8.8/a", "https://[2606:4700:4700::1111]/a", "https://svc.example.com/a", "https://local.example.com",
		"https://1.example.com", "HTTPS://example.com",
	} {
		check.Equal(t, raw, true, prompt.PublicURL(raw))
	}
	for _, raw := range []string{
		"http://example.com/a", "ftp://example.com/a", "//example.com/a", "example.com", "", "https://", "https:example.com",
		"https:///a", "https://u@example.com/a", "https://u:p@example.com/a",
		"https://localhost/a", "https://LOCALHOST./a", "https://a.localhost/", "https://files/a", "https://files:8443/a",
		"https://files./a",
		"https://files.models.svc/a", "https://files.models.svc.cluster.local/a",
		"https://files.models.svc.k8s.example.com/a", "https://10-0-0-1.models.pod.k8s.example.com",
		"https://metadata.google.internal/a", "https://printer.local", "https://a.lan", "https://a.corp",
		"https://router.home.arpa", "https://1.0.0.10.in-addr.arpa", "https://a.onion", "https://a.internal.",
		"https://127.0.0.1/a", "https://10.1.2.3/a", "https://172.16.0.1", "https://192.168.1.1",
		"https://169.254.169.254/latest/meta-data", "https://100.64.0.1", "https://0.0.0.0", "https://255.255.255.255",
		"https://224.0.0.1", "https://192.0.2.1", "https://198.18.0.1", "https://[::1]/a", "https://[::]/a",
		"https://[fe80::1]/a", "https://[fe80::1%25eth0]/a", "https://[fd00::1]/a", "https://[ff02::1]/a",
		"https://[::ffff:10.0.0.1]/a", "https://[::10.0.0.1]/a", "https://[64:ff9b::a00:1]/a", "https://[2002:a00:1::]/a",
		"https://127.1/a", "https://2130706433/a", "https://0x7f.0.0.1/a", "https://0x7f000001/a", "https://a.0x7f/a",
		"https://010.0.0.1/a", "https://127.0.0.1./a", "https://1.2.3.4.5/a",
		"https://exa\u3002mple.com/a", "https://bücher.example/a", "https://a..example.com/a", "https://.example.com/a",
		"https://example.com\\@evil.example/a", "https://a b.example.com", "https://%6cocalhost/a",
		"https://" + strings.Repeat("a.", 130) + "com/a",
	} {
		check.Equal(t, raw, false, prompt.PublicURL(raw))
	}
}

func TestFilesAreHandedToProvidersThatFetch(t *testing.T) {
	const problem = "host h is none that files may be fetched from"
	fetching := prompt.Dialect{Images: true, PDFs: true, FileURLs: []string{"image/png"}}
	for name, c := range map[string]struct {
		dialect   prompt.Dialect
		mediaType string
		fetched   prompt.File
		want      string
	}{
		"a type that it fetches": {fetching, "image/png", prompt.File{Problem: problem, URL: "https://h.example/a"},
			"https://h.example/a"},
		"a type that it does not fetch": {fetching, "image/gif", prompt.File{Problem: problem, URL: "https://h.example/a"},
			`[File "a" (image/gif) cannot be shown: ` + problem +
				`, and the provider of the model fetches no files of this type itself.]`},
		"a text": {fetching, "text/plain",
			prompt.File{Problem: problem, URL: "https://h.example/a"}, `[File "a" (text/plain) cannot be shown: ` + problem +
				`, and the provider of the model fetches no files of this type itself.]`},
		"a provider that fetches nothing": {prompt.Dialect{Images: true}, "image/png",
			prompt.File{Problem: problem, URL: "https://h.example/a"}, `[File "a" (image/png) cannot be shown: ` + problem +
				`, and the provider of the model fetches no files of this type itself.]`},
		"a URL that is not handed to any": {fetching, "image/png", prompt.File{Problem: problem},
			`[File "a" (image/png) cannot be shown: ` + problem + `.]`},
		"a file that was fetched here": {fetching, "image/png", prompt.File{Data: []byte(png)}, png},
		"what is large when fetched there": {fetching, "image/png",
			prompt.File{Problem: problem, URL: "https://h.example/large"}, "https://h.example/large"},
	} {
		t.Run(name, func(t *testing.T) {
			m := said(v1beta1.RoleUser,
				file(v1beta1.MessageFile{Name: "a", MediaType: c.mediaType, URL: "https://h.example/a"}))
			m.Name = "m"
			in := prompt.Input{History: []v1beta1.ChatMessage{m},
				Files: map[prompt.FileKey]prompt.File{{Message: "m"}: c.fetched}, Dialect: c.dialect}
			built := prompt.Build(in)
			got := ""
			switch part := built[0].Content[0].(type) {
			case fantasy.TextPart:
				got = part.Text
			case fantasy.FilePart:
				got = string(part.Data)
				if of, from, ok := prompt.URLOf(part); ok {
					got = from
					check.Equal(t, "the file", fantasy.FilePart{Filename: "a", MediaType: c.mediaType}, of,
						cmpopts.IgnoreFields(fantasy.FilePart{}, "ProviderOptions"))
					check.Contains(t, strings.Join(prompt.Texts(built), "\n"), from)
				}
			}
			check.Equal(t, "what is told", c.want, got)
		})
	}
}

func TestHandedFilesTakeNoRoomButAreCounted(t *testing.T) {
	in := prompt.Input{Files: map[prompt.FileKey]prompt.File{},
		Dialect: prompt.Dialect{Images: true, FileURLs: []string{"image/png"}}}
	add := func(f prompt.File) {
		m := said(v1beta1.RoleUser, elsewhere("a.png", "image/png"))
		m.Name = fmt.Sprint(len(in.History))
		in.History = append(in.History, m)
		in.Files[prompt.FileKey{Message: m.Name}] = f
	}
	for range prompt.MaxFileURLs + 2 {
		add(prompt.File{URL: "https://h.example/a"})
	}
	for range 4 { // They take all the room that files have.
		add(prompt.File{Data: append([]byte(png), make([]byte, 3<<20)...)})
	}
	handed, absent := 0, 0
	for i, m := range prompt.Build(in) {
		if _, _, ok := prompt.URLOf(m.Content[0]); ok {
			handed++
		} else if text, ok := m.Content[0].(fantasy.TextPart); ok &&
			strings.Contains(text.Text, "newer files took the room") {
			if absent++; i > 1 && i < prompt.MaxFileURLs+2 {
				t.Errorf("file %d is left out", i)
			}
		}
	}
	check.Equal(t, "handed, absent", []any{prompt.MaxFileURLs, 3}, []any{handed, absent})
}
