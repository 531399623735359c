// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

// pictures is a prompt with so many images, in two messages, and a document.
func pictures(n int) fantasy.Prompt {
	var older, newer []fantasy.MessagePart
	for i := range n {
		file := fantasy.FilePart{Filename: fmt.Sprintf("%d.png", i), MediaType: "image/png", Data: pictureData(i)}
		if i < n/2 {
			older = append(older, file)
		} else {
			newer = append(newer, file)
		}
	}
	document := fantasy.FilePart{Filename: "a.pdf", MediaType: "application/pdf", Data: []byte("%PDF-")}
	return fantasy.Prompt{
		{Role: fantasy.MessageRoleUser, Content: append([]fantasy.MessagePart{document}, older...)},
		{Role: fantasy.MessageRoleAssistant, Content: []fantasy.MessagePart{fantasy.TextPart{Text: "I see."}}},
		{Role: fantasy.MessageRoleUser, Content: append(newer, fantasy.TextPart{Text: "And these?"})},
	}
}

func pictureData(n int) []byte { return fmt.Appendf(nil, "picture-%04d", n) }

// picturesIn are which of the images a request has: how many, and whether they are the newest.
func picturesIn(body string, n int) (sent int, newest bool) {
	newest = true
	for i := range n {
		if strings.Contains(body, base64.StdEncoding.EncodeToString(pictureData(i))) {
			sent++
		} else {
			newest = newest && sent == 0
		}
	}
	return sent, newest
}

func TestTooManyImagesRepeatWithTheNewest(t *testing.T) {
	chat := providertest.Events(providertest.Chunk(`{"content":"Hi"}`, `"stop"`))
	claude := providertest.Events(`{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`)
	ofClaude := func(message string) string {
		return `{"type":"error","error":{"type":"invalid_request_error","message":"` + message + `"}}`
	}
	ofOpenAI := func(message string) string { return `{"error":{"message":"` + message + `","code":400}}` }
	for name, c := range map[string]struct {
		spec     string
		refusals []string
		images   int
		// want are how many images each request of two calls has.
		want []int
	}{
		"Anthropic": {"anthropic", []string{ofClaude("too many images and documents: 105 + 1 > 100")}, 105,
			[]int{105, 100, 100}},
		"Anthropic, with pages": {"anthropic",
			[]string{ofClaude("Too much media: 90 document pages + 20 images > 100")}, 20, []int{20, 10, 20}},
		"Groq": {"openai-compatible",
			[]string{ofOpenAI("Too many images provided. This model supports up to 5 images")}, 7, []int{7, 5, 5}},
		"Azure": {"azure", []string{ofOpenAI("Too many images in request. Max is 10.")}, 12, []int{12, 10, 10}},
		"vLLM": {"openai-compatible", []string{`{"object":"error","message":"At most 1 image(s) may be provided in one ` +
			`prompt.","type":"BadRequestError","param":null,"code":400}`}, 3, []int{3, 1, 1}},
		"Meta": {"openai-compatible",
			[]string{ofOpenAI("request contains 54 images, exceeding the maximum of 50 allowed per request")}, 54,
			[]int{54, 50, 50}},
		"an unknown limit": {"openai-compatible", []string{ofOpenAI("too many images"), ofOpenAI("too many images")}, 8,
			[]int{8, 4, 2, 8}},
		"DeepSeek": {"openai-compatible", []string{ofOpenAI("Failed to deserialize the JSON body into the target type: " +
			"messages[0]: unknown variant `image_url`, expected `text` at line 1 column 3950")}, 2, []int{2, 0, 0}},
		"a model for text": {"openai-compatible", []string{ofOpenAI("qwen3 is not a multimodal model")}, 2, []int{2, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			server := &providertest.Scripted{}
			for _, refusal := range c.refusals {
				server.Replies = append(server.Replies, providertest.Reply{Status: http.StatusBadRequest, Body: refusal})
			}
			spec := providertest.Specs[c.spec]
			if c.spec == "anthropic" {
				server.Replies = append(server.Replies, claude...)
			} else {
				server.Replies = append(server.Replies, chat...)
			}
			model, err := provider.New(&spec, "", &http.Client{Transport: server})
			check.OK(t, err)
			var warnings []fantasy.CallWarning
			for range 2 { // The second call knows the limit, if there is one.
				warnings = nil
				call := provider.Call(&spec, "")
				call.Prompt = pictures(c.images)
				stream, err := model.Stream(t.Context(), call)
				check.OK(t, err)
				for part := range stream {
					check.OK(t, part.Error)
					warnings = append(warnings, part.Warnings...)
				}
			}
			var got []int
			for _, body := range server.Sent {
				sent, newest := picturesIn(body, c.images)
				if got = append(got, sent); !newest {
					t.Errorf("other images than the newest are sent: %s", body)
				}
			}
			check.Equal(t, "images", c.want, got)
			last := server.Sent[len(server.Sent)-1]
			omitted := c.images > c.want[len(c.want)-1]
			check.Equal(t, "a warning, a placeholder", []bool{omitted, omitted},
				[]bool{len(warnings) > 0 && warnings[len(warnings)-1].Setting == "images",
					strings.Contains(last, `cannot be shown: the model takes `)})
		})
	}
}

func TestOtherRefusalsOfImagesFailTheCall(t *testing.T) {
	for name, reply := range map[string]providertest.Reply{
		"an image":      {Status: http.StatusBadRequest, Body: `{"error":{"message":"Could not process image"}}`},
		"a type":        {Status: http.StatusBadRequest, Body: `{"error":{"message":"does not support image type bmp"}}`},
		"a rate":        {Status: http.StatusTooManyRequests, Body: `{"error":{"message":"too many images > 5"}}`},
		"no image left": {Status: http.StatusBadRequest, Body: `{"error":{"message":"At most 0 image(s) may be provided"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			server := &providertest.Scripted{Replies: []providertest.Reply{reply}}
			_, err := server.Ask(t, providertest.Specs["openai-compatible"], func(call *fantasy.Call) {
				call.Prompt = pictures(2)
			})
			want := 1
			if name == "no image left" {
				want = 2
			}
			if err == nil || len(server.Sent) != want {
				t.Errorf("%d requests, error %v", len(server.Sent), err)
			}
		})
	}
}
