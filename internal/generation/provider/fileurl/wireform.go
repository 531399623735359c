// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/rewrite"
)

// wireForm is where a protocol has the files of a prompt, and how it names the URL of one in place of its content.
type wireForm struct {
	// turns is the list of a request's body that the conversation is in, and blocks the list of each turn that its
	// parts are in.
	turns, blocks string
	// amend names the URL in a block whose content stands for one, and is false for any other block.
	amend func(block object, urls standIns) bool
}

type object = map[string]any

// standIns are the URLs of files by what stands for each of them in a request: as the content of the file, in base64.
type standIns map[string]string

// inData is the URL that the content of a data: URL stands for.
func (s standIns) inData(content any) (string, bool) {
	text, _ := content.(string)
	head, data, found := strings.Cut(text, ";base64,")
	if !found || !strings.HasPrefix(head, "data:") {
		return "", false
	}
	at, ok := s[data]
	return at, ok
}

var (
	chatForm = wireForm{turns: "messages", blocks: "content", amend: func(block object, urls standIns) bool {
		switch block["type"] {
		case "image_url":
			return replaceData(block["image_url"], "url", urls)
		case "file":
			return replaceData(block["file"], "file_data", urls)
		}
		return false
	}}
)

// replaceData puts the URL in place of a data: URL that stands for it.
func replaceData(in any, field string, urls standIns) bool {
	fields, ok := in.(object)
	if !ok {
		return false
	}
	at, ok := urls.inData(fields[field])
	if ok {
		fields[field] = at
	}
	return ok
}

// maxStandIn is the longest block that is looked at: one that stands for a URL has no content, and the longest names of
// files take 4 KiB as JSON.
const maxStandIn = 16 << 10

// write returns the body with each URL in its place. All else stays byte for byte. It fails unless each is found
// exactly once, and nothing that stands for one is left.
func (f wireForm) write(body []byte, urls standIns) ([]byte, error) {
	found := 0
	written, err := rewrite.Blocks(body, f.turns, f.blocks, func(raw []byte) ([]byte, error) {
		if len(raw) > maxStandIn {
			return nil, nil
		}
		block := object{}
		in := json.NewDecoder(bytes.NewReader(raw))
		in.UseNumber()
		if err := in.Decode(&block); err != nil {
			return nil, err
		}
		if !f.amend(block, urls) {
			return nil, nil
		}
		found++
		return rewrite.Encode(block)
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", fault.ErrFileURLs, err)
	}
	if found != len(urls) {
		return nil, fmt.Errorf("%w: %d of %d are found", fault.ErrFileURLs, found, len(urls))
	}
	for standIn := range urls {
		if bytes.Contains(written, []byte(standIn)) {
			return nil, fmt.Errorf("%w: one is also elsewhere", fault.ErrFileURLs)
		}
	}
	return written, nil
}
