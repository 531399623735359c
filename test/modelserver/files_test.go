// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"encoding/base64"
	"net/http"
	"testing"

	"parley.dev/parley/test/modelserver"
)

var (
	png64 = base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\nrest"))
	pdf64 = base64.StdEncoding.EncodeToString([]byte("%PDF-1.7\nrest"))
)

const (
	openRouterPath = "/api/v1/chat/completions"
	vercelPath     = "/vercel/v1/chat/completions"
	geminiOldPath  = "/v1beta/models/gemini-2.0-flash:streamGenerateContent?alt=sse"
)

func withBlocks(blocks string) string { return `{"role":"user","content":[` + blocks + `]}` }

func inAnthropic(kind, source string) string {
	return anthropicChat(withBlocks(`{"type":"` + kind + `","source":` + source + `}`))
}

func inChat(part string) string { return chat(withBlocks(part)) }

func inBedrock(source string) string {
	return `{"anthropic_version":"bedrock-2023-05-31","max_tokens":1,"messages":[` +
		withBlocks(`{"type":"image","source":`+source+`}`) + `]}`
}

func inGemini(part string) string { return contents(`{"role":"user","parts":[` + part + `]}`) }

func TestFilesAreTakenAsContentAndByURL(t *testing.T) {
	const at = `"https://example.com/a?b=c"`
	_, url := serve(t, modelserver.Script{})
	for name, c := range map[string]struct {
		path, body string
		// want is what a refusal says; empty: it is taken.
		want string
	}{
		"anthropic: an image": {messagesPath,
			inAnthropic("image", `{"type":"base64","media_type":"image/png","data":"`+png64+`"}`), ""},
		"anthropic: an image by URL": {messagesPath, inAnthropic("image", `{"type":"url","url":`+at+`}`), ""},
		"anthropic: a PDF": {messagesPath,
			inAnthropic("document", `{"type":"base64","media_type":"application/pdf","data":"`+pdf64+`"}`), ""},
		"anthropic: a PDF by URL": {messagesPath, inAnthropic("document", `{"type":"url","url":`+at+`}`), ""},
		"anthropic: no source": {messagesPath, anthropicChat(withBlocks(`{"type":"image"}`)),
			"image.source: Field required"},
		"anthropic: http": {messagesPath,
			inAnthropic("image", `{"type":"url","url":"http://example.com/a"}`), "Only HTTPS URLs"},
		"anthropic: URL and content": {messagesPath, inAnthropic("image", `{"type":"url","url":`+at+`,"data":"x"}`),
			"Extra inputs"},
		"anthropic: no base64": {messagesPath,
			inAnthropic("image", `{"type":"base64","media_type":"image/png","data":"%"}`), "Could not process image"},
		"anthropic: what is no image": {messagesPath,
			inAnthropic("image", `{"type":"base64","media_type":"image/png","data":"`+pdf64+`"}`), "Could not process image"},
		"anthropic: what is no PDF": {messagesPath,
			inAnthropic("document", `{"type":"base64","media_type":"application/pdf","data":"`+png64+`"}`),
			"PDF specified was not valid"},
		"anthropic: an image of a PDF": {messagesPath,
			inAnthropic("image", `{"type":"base64","media_type":"application/pdf","data":"`+pdf64+`"}`),
			"media_type: Input should be"},
		"bedrock: an image": {bedrockPath,
			inBedrock(`{"type":"base64","media_type":"image/png","data":"` + png64 + `"}`), ""},
		"bedrock: an image by URL": {bedrockPath, inBedrock(`{"type":"url","url":` + at + `}`),
			"URL sources are not supported"},
		"chat: an image": {chatPath,
			inChat(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png64 + `"}}`), ""},
		"chat: an image by URL": {chatPath, inChat(`{"type":"image_url","image_url":{"url":` + at + `}}`), ""},
		"chat: a PDF": {chatPath,
			inChat(`{"type":"file","file":{"filename":"a","file_data":"data:application/pdf;base64,` + pdf64 + `"}}`), ""},
		"chat: http": {chatPath,
			inChat(`{"type":"image_url","image_url":{"url":"http://example.com/a"}}`), "Image URL is invalid"},
		"chat: what is no image": {chatPath,
			inChat(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pdf64 + `"}}`), "unsupported image"},
		"chat: an image of no type": {chatPath,
			inChat(`{"type":"image_url","image_url":{"url":"data:text/plain;base64,` + png64 + `"}}`), "unsupported MIME type"},
		"chat: a URL as the image": {chatPath, inChat(`{"type":"image_url","image_url":` + at + `}`),
			"expected an object"},
		"chat: a PDF by URL": {chatPath,
			inChat(`{"type":"file","file":{"filename":"a","file_data":` + at + `}}`), "Invalid file data"},
		"chat: a PDF with a URL": {chatPath, inChat(`{"type":"file","file":{"file_url":` + at + `}}`), "file_url"},
		"vercel: a PDF by URL": {vercelPath,
			inChat(`{"type":"file","file":{"filename":"a","file_data":` + at + `}}`), "Invalid file data"},
		"openrouter: a PDF by URL": {openRouterPath,
			inChat(`{"type":"file","file":{"filename":"a","file_data":` + at + `}}`), ""},
		"responses: an image": {responsesPath,
			responsesChat(withBlocks(`{"type":"input_image","image_url":"data:image/png;base64,` + png64 + `"}`)), ""},
		"responses: an image by URL": {responsesPath,
			responsesChat(withBlocks(`{"type":"input_image","image_url":` + at + `}`)), ""},
		"responses: an image in an object": {responsesPath,
			responsesChat(withBlocks(`{"type":"input_image","image_url":{"url":` + at + `}}`)), "expected an image URL"},
		"responses: a PDF by URL": {responsesPath,
			responsesChat(withBlocks(`{"type":"input_file","file_url":` + at + `}`)), ""},
		"responses: a PDF with a name": {responsesPath,
			responsesChat(withBlocks(`{"type":"input_file","filename":"a","file_url":` + at + `}`)), "file_url"},
		"responses: a PDF twice": {responsesPath,
			responsesChat(withBlocks(`{"type":"input_file","file_url":` + at + `,"file_data":"data:application/pdf;base64,` +
				pdf64 + `"}`)), "exactly one"},
		"gemini: an image": {geminiPath,
			inGemini(`{"inlineData":{"mimeType":"image/png","data":"` + png64 + `"}}`), ""},
		"gemini: what is no image": {geminiPath,
			inGemini(`{"inlineData":{"mimeType":"image/png","data":"` + pdf64 + `"}}`), "Unable to process input image"},
		"gemini: an image by URL": {geminiPath,
			inGemini(`{"fileData":{"mimeType":"image/png","fileUri":` + at + `}}`), ""},
		"gemini: a GIF by URL": {geminiPath,
			inGemini(`{"fileData":{"mimeType":"image/gif","fileUri":` + at + `}}`), "Unsupported MIME type"},
		"gemini: http": {geminiPath,
			inGemini(`{"fileData":{"mimeType":"image/png","fileUri":"http://example.com/a"}}`), "unsupported file uri"},
		"gemini: an image by URL, to 2.0": {geminiOldPath,
			inGemini(`{"fileData":{"mimeType":"image/png","fileUri":` + at + `}}`), "unsupported file uri"},
		"gemini: content and URL": {geminiPath,
			inGemini(`{"inlineData":{"mimeType":"image/png","data":"` + png64 +
				`"},"fileData":{"mimeType":"image/png","fileUri":` + at + `}}`), "must have one initialized field"},
	} {
		t.Run(name, func(t *testing.T) {
			status := http.StatusOK
			if c.want != "" {
				status = http.StatusBadRequest
			}
			expect(t, url+c.path, c.body, status, c.want, append(geminiKey, bedrockKey...)...)
		})
	}
}
