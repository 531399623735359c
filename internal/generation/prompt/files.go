// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
)

const (
	// MaxFileBytes limits a file to what is stored of one: less than 5 MB of base64, Anthropic's limit of an image.
	MaxFileBytes = v1beta1.MaxStoredFileBytes
	// MaxFilesBytes limits the files of a prompt; the oldest ones are omitted.
	MaxFilesBytes = 12 << 20
	// MaxFileURLs limits the files that a provider fetches for a prompt, the newest ones: to Azure's limit of images, the
	// lowest that is documented.
	MaxFileURLs = 10
	// maxInlined limits the text of a file.
	maxInlined = 128 << 10
)

// FileKey identifies a file by its message and the index of its part.
type FileKey struct {
	Message string
	Part    int
}

// File is the content of a file, or why there is none.
type File struct {
	Data    []byte
	Problem string
	// URL is for providers that fetch files of this type themselves. For others the Problem applies.
	URL string
}

// noRoom is the problem of a file that exceeds the limits of a prompt.
const noRoom = "newer files took the room"

// fileBudget are the contents of all files, within the limits of a prompt, newest first.
func fileBudget(history []v1beta1.ChatMessage, fetched map[FileKey]File, d Dialect) map[FileKey]File {
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
	d.ImageSides.limit(files)
	return files
}

func contentOf(file *v1beta1.MessageFile, key FileKey, fetched map[FileKey]File) File {
	if file.ConfigMapKeyRef == nil && file.URL == "" && file.Stored == nil {
		return InPlace(file)
	}
	if f, ok := fetched[key]; ok {
		return f
	}
	return File{Problem: "it was not read"}
}

// InPlace is the content of a file in its message.
func InPlace(file *v1beta1.MessageFile) File {
	content, err := file.Content()
	if err != nil {
		return File{Problem: "its data is not base64"}
	}
	return File{Data: content}
}

// file is the file if the provider takes it, its text, or why it cannot be shown.
func (b *builder) file(key FileKey, file *v1beta1.MessageFile) fantasy.MessagePart {
	f := b.files[key]
	if f.URL != "" {
		return fantasy.FilePart{
			Filename: clean(file.Name), MediaType: file.MediaType,
			ProviderOptions: fantasy.ProviderOptions{fileURLKey: &FileURL{URL: f.URL}},
		}
	}
	if f.Problem == "" && len(f.Data) == 0 {
		f.Problem = "it is empty"
	}
	if f.Problem != "" {
		return absent(file, f.Problem)
	}
	if isText(file.MediaType) {
		return inlined(file, f.Data)
	}
	return b.binary(file, f.Data)
}

func (b *builder) binary(file *v1beta1.MessageFile, data []byte) fantasy.MessagePart {
	kind := kindOf(data)
	isImage := strings.HasPrefix(file.MediaType, "image/")
	switch {
	case isImage && b.Dialect.Images && strings.HasPrefix(kind, "image/"),
		file.MediaType == pdf && b.Dialect.PDFs && kind == pdf:
		// Providers refuse an image whose type is not that of its content.
		return fantasy.FilePart{Filename: clean(file.Name), Data: data, MediaType: kind}
	case kind == "" && (isImage || file.MediaType == pdf):
		return absent(file, "its content is not what its type says")
	}
	return absent(file, "the model takes no files of this type")
}

func absent(file *v1beta1.MessageFile, why string) fantasy.TextPart {
	return Absent(file.Name, file.MediaType, why)
}

// Absent replaces a file that the model does not see.
func Absent(name, mediaType, why string) fantasy.TextPart {
	return fantasy.TextPart{Text: fmt.Sprintf("[File %q (%s) cannot be shown: %s.]", clean(name), clean(mediaType),
		clean(why))}
}

// inlined is a text file between fences that do not occur in it.
func inlined(file *v1beta1.MessageFile, data []byte) fantasy.TextPart {
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

// textTypes are the media types of texts.
var textTypes = regexp.MustCompile(`^text/|\+(json|xml|yaml)$|` +
	`^application/(json|x-ndjson|yaml|x-yaml|toml|xml|javascript|x-sh|sql)$`)

func isText(mediaType string) bool { return textTypes.MatchString(mediaType) }

const pdf = "application/pdf"

// kindOf is the type of the content, by its first bytes; empty if no provider takes it.
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

// fileURLKey is the key of a FileURL in the options of a part.
const fileURLKey = "parley"

// FileURL is a public URL from which a provider fetches a file. It is in the options of a fantasy.FilePart without
// data, because fantasy has no part for a URL. A protocol writes it into its request.
type FileURL struct{ URL string }

// Options implements fantasy.ProviderOptionsData.
func (*FileURL) Options() {}

// MarshalJSON implements json.Marshaler.
func (f *FileURL) MarshalJSON() ([]byte, error) { return json.Marshal(f.URL) }

// UnmarshalJSON implements json.Unmarshaler.
func (f *FileURL) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &f.URL) }

// URLOf is the URL of a file that the provider fetches.
func URLOf(part fantasy.MessagePart) (file fantasy.FilePart, from string, ok bool) {
	if file, ok = part.(fantasy.FilePart); !ok {
		return file, "", false
	}
	at, ok := file.ProviderOptions[fileURLKey].(*FileURL)
	if !ok {
		return file, "", false
	}
	return file, at.URL, true
}

// PublicURL reports whether a provider may be sent a URL: it is https, has no user, and its host is neither an address
// nor a name of a private network. The name is not resolved, so that the result stays the same.
func PublicURL(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Opaque != "" {
		return false
	}
	host := u.Hostname()
	if address, err := netip.ParseAddr(host); err == nil {
		return publicAddress(address)
	}
	return publicName(strings.ToLower(strings.TrimSuffix(host, ".")))
}

// privatePrefixes are not globally reachable according to IANA's registries (RFC 6890), or embed IPv4 addresses, and
// netip does not treat them as private.
var privatePrefixes = strings.Fields(`0.0.0.0/8 100.64.0.0/10 192.0.0.0/24 192.0.2.0/24 198.18.0.0/15 198.51.100.0/24
	203.0.113.0/24 240.0.0.0/4 ::/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001:db8::/32 2002::/16 fec0::/10`)

func publicAddress(address netip.Addr) bool {
	isGlobal := address.Zone() == ""
	address = address.Unmap()
	return isGlobal && address.IsGlobalUnicast() && !address.IsPrivate() &&
		!slices.ContainsFunc(privatePrefixes, func(p string) bool { return netip.MustParsePrefix(p).Contains(address) })
}

// privateNames are domains of private networks, from RFC 6761, 6762 with its appendix G, 8375, and ICANN.
var privateNames = []string{
	"localhost", "local", "localdomain", "internal", "intranet", "private", "corp", "home", "lan", "svc", "test",
	"invalid", "onion", "arpa",
}

// publicName reports whether the host is a public name of several labels. The last label is no number, because lenient
// parsers take 127.1 or 0x7f.1 for an address.
func publicName(host string) bool {
	labels := strings.Split(host, ".")
	// Services and pods of a cluster, whatever its domain is: name.namespace.svc.cluster.local.
	if len(labels) > 3 && (labels[2] == "svc" || labels[2] == "pod") {
		return false
	}
	return len(host) <= 253 && nameForm.MatchString(host) && !slices.Contains(privateNames, labels[len(labels)-1])
}

var nameForm = regexp.MustCompile(`^(?:[a-z0-9_-]+\.)+[a-z][a-z0-9-]*$`)
