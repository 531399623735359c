// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/genai"
)

// The kinds of files that the providers read.
const kindPDF = "application/pdf"

// magics are how the content of each kind of file begins.
var magics = map[string][]string{
	"image/png": {"\x89PNG\r\n\x1a\n"}, "image/jpeg": {"\xff\xd8\xff"}, "image/gif": {"GIF87a", "GIF89a"},
	"image/webp": {"RIFF"}, kindPDF: {"%PDF-"},
}

func isImage(kind string) bool { return strings.HasPrefix(kind, "image/") && magics[kind] != nil }

// isContent reports whether data is base64 of a file of the kind, as far as its beginning shows.
func isContent(kind, data string) bool {
	raw, err := base64.StdEncoding.DecodeString(data)
	return err == nil && begins(kind, raw)
}

func begins(kind string, raw []byte) bool {
	return slices.ContainsFunc(magics[kind], func(magic string) bool { return strings.HasPrefix(string(raw), magic) })
}

// fetchable reports whether a URL is one that a provider would ask. This server asks nobody.
func fetchable(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil
}

// anthropicSource is the source of an image or a document.
type anthropicSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
}

// validateFile holds that an image is an image and a document a PDF or a text, and that a URL can be fetched.
func (b anthropicBlock) validateFile(at string) *apiError {
	s := b.Source
	if s == nil {
		return refuse("%s.%s.source: Field required", at, b.Type)
	}
	switch {
	case s.Type == "url" && s.Data+s.MediaType != "":
		return refuse("%s.%s.source.url.data: Extra inputs are not permitted", at, b.Type)
	case s.Type == "url" && !fetchable(s.URL):
		return refuse("%s.%s.source.url.url: Only HTTPS URLs are supported.", at, b.Type)
	case s.Type == "url":
		return nil
	case s.Type == "text" && b.Type == "document":
		return nil
	case s.Type != "base64":
		return refuse("%s.%s.source: Input tag '%s' found using 'type' does not match any of the expected tags: "+
			"'base64', 'url'", at, b.Type, s.Type)
	case b.Type == "document" && s.MediaType != kindPDF || b.Type == "image" && !isImage(s.MediaType):
		return refuse("%s.%s.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or "+
			"'image/webp'", at, b.Type)
	case b.Type == "document" && !isContent(s.MediaType, s.Data):
		return refuse("%s.%s.source.base64: The PDF specified was not valid.", at, b.Type)
	case !isContent(s.MediaType, s.Data):
		return refuse("Could not process image")
	}
	return nil
}

// openAIPart is what a part of a message has of a file: those of chat completions in an object,
// those of responses as they are.
type openAIPart struct {
	Type     string          `json:"type"`
	ImageURL json.RawMessage `json:"image_url"`
	File     openAIFile      `json:"file"`
	openAIFile
}

type openAIFile struct {
	FileData string `json:"file_data"`
	FileURL  string `json:"file_url"`
	FileID   string `json:"file_id"`
	Filename string `json:"filename"`
}

// validateOpenAIFiles looks at the files of a message's content.
// urls reports whether file_data may be a URL, as with OpenRouter.
func validateOpenAIFiles(at string, content json.RawMessage, urls bool) *apiError {
	var parts []openAIPart
	if json.Unmarshal(content, &parts) != nil {
		return nil // A plain text.
	}
	for j, p := range parts {
		at := fmt.Sprintf("%s.content[%d]", at, j)
		var refused *apiError
		switch p.Type {
		case "image_url":
			var image struct {
				URL string `json:"url"`
			}
			if json.Unmarshal(p.ImageURL, &image) != nil {
				return badRequest(at+".image_url", "invalid_type",
					"Invalid type for '%s.image_url': expected an object, but got a string instead.", at)
			}
			refused = validateImage(at+".image_url.url", image.URL)
		case "input_image":
			var image string
			if json.Unmarshal(p.ImageURL, &image) != nil {
				return badRequest(at+".image_url", "invalid_type",
					"Invalid type for '%s.image_url': expected an image URL, but got an object instead.", at)
			}
			refused = validateImage(at+".image_url", image)
		case "file":
			refused = p.File.validate(at+".file", urls)
		case "input_file":
			refused = p.validate(at, false)
		}
		if refused != nil {
			return refused
		}
	}
	return nil
}

// validateImage takes a URL, or an image as a data: URL.
func validateImage(param, image string) *apiError {
	kind, data, found := cutData(image)
	switch {
	case !found && !fetchable(image):
		return badRequest(param, "invalid_image_url", "Failed to download image from %s. Image URL is invalid.", image)
	case found && !isImage(kind):
		return badRequest(param, "invalid_value",
			"Invalid '%s'. Expected a base64-encoded data URL with an image MIME type (e.g. "+
				"'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got unsupported MIME type '%s'.", param, kind)
	case found && !isContent(kind, data):
		return badRequest(param, "invalid_image_format",
			"You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', "+
				"'jpeg', 'gif', 'webp'].")
	}
	return nil
}

// validate holds that there is one way to the file, and that content is a PDF.
func (f openAIFile) validate(at string, urls bool) *apiError {
	kind, data, found := cutData(f.FileData)
	given := found && kind == kindPDF && isContent(kind, data) || urls && fetchable(f.FileData)
	switch {
	case count(f.FileData != "", f.FileURL != "", f.FileID != "") != 1:
		return badRequest(at, "invalid_value",
			"Invalid value: expected exactly one of 'file_data', 'file_url' and 'file_id'.")
	case f.FileURL != "" && (strings.HasSuffix(at, ".file") || f.Filename != "" || !fetchable(f.FileURL)):
		return badRequest(at+".file_url", "invalid_value", "Invalid value: '%s.file_url'.", at)
	case f.FileData != "" && !given:
		return badRequest(at+".file_data", "invalid_value",
			"Invalid file data: '%s.file_data'. Expected a base64-encoded data URL with an application/pdf MIME type (e.g. "+
				"'data:application/pdf;base64,aW1nIGJ5dGVzIGhlcmU='), but got a value without the 'data:' prefix.", at)
	}
	return nil
}

func cutData(text string) (kind, data string, found bool) {
	head, data, found := strings.Cut(text, ";base64,")
	kind, isData := strings.CutPrefix(head, "data:")
	return kind, data, found && isData
}

// geminiFetches are the kinds that Gemini fetches, of those that this server knows.
var geminiFetches = []string{"image/png", "image/jpeg", "image/webp", kindPDF}

func validateGeminiFile(p *genai.Part, at, model string) *apiError {
	switch {
	case p.InlineData != nil && !begins(p.InlineData.MIMEType, p.InlineData.Data):
		return refuse("Unable to process input image. Please retry or report in " +
			"https://developers.generativeai.google/guide/troubleshooting")
	case p.FileData == nil:
		return nil
	case strings.HasPrefix(model, "gemini-2.0"), !fetchable(p.FileData.FileURI):
		return refuse("Invalid or unsupported file uri: %s", p.FileData.FileURI)
	case !slices.Contains(geminiFetches, p.FileData.MIMEType):
		return refuse("Unsupported MIME type: %s at %s", p.FileData.MIMEType, at)
	}
	return nil
}
