// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"mime"
	"path"
	"strings"

	"parley.dev/parley/api/v1alpha1"
)

// Text is a part of a message.
func Text(text string) v1alpha1.MessagePart {
	return v1alpha1.MessagePart{Type: v1alpha1.PartText, Text: &text}
}

// Image is a part of a message: an image at a URL, or in a data URL.
func Image(param, url string) (v1alpha1.MessagePart, error) {
	return file(param, "image", url, "image/png")
}

// File is a part of a message: a file in a data URL.
func File(param, name, url string) (v1alpha1.MessagePart, error) {
	return file(param, baseOf(name), url, "application/pdf")
}

// Data is a part of a message: a file in place, in base64.
func Data(name, mediaType, content string) v1alpha1.MessagePart {
	return v1alpha1.MessagePart{Type: v1alpha1.PartFile,
		File: &v1alpha1.MessageFile{Name: baseOf(name), MediaType: strings.ToLower(mediaType), Data: content}}
}

// NoFileInResult stands for a file in the result of a call.
func NoFileInResult(kind string) string {
	return "(a file of type " + kind + ", which results of calls do not hold)"
}

// baseOf is the last word of a path, or what stands for none.
func baseOf(name string) string {
	if name = path.Base(strings.TrimSpace(name)); name == "." || name == "/" {
		return "file"
	}
	return name
}

func file(param, name, url, usual string) (v1alpha1.MessagePart, error) {
	f := &v1alpha1.MessageFile{Name: name}
	data, inPlace := strings.CutPrefix(url, "data:")
	if !inPlace {
		f.URL = url
		f.MediaType = usual
		if byName, _, err := mime.ParseMediaType(mime.TypeByExtension(path.Ext(withoutQuery(url)))); err == nil {
			f.MediaType = byName
		}
		return v1alpha1.MessagePart{Type: v1alpha1.PartFile, File: f}, nil
	}
	kind, content, ok := strings.Cut(data, ";base64,")
	if !ok {
		return v1alpha1.MessagePart{}, Invalid(param, "the data URL is not of the form data:TYPE;base64,CONTENT")
	}
	f.MediaType, f.Data = strings.ToLower(kind), content
	return v1alpha1.MessagePart{Type: v1alpha1.PartFile, File: f}, nil
}

func withoutQuery(url string) string {
	before, _, _ := strings.Cut(url, "?")
	return before
}
