// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// content reads a message's content, which is a string or a list of typed parts, as the text in it.
func content(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", fmt.Errorf("content is neither a string nor a list of parts")
	}
	b := strings.Builder{}
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String(), nil
}

// Names of tools as the providers take them.
var (
	openAIToolName    = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	anthropicToolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
)

func toolNames(names []string, valid *regexp.Regexp) error {
	for _, name := range names {
		if !valid.MatchString(name) {
			return fmt.Errorf("tools: name %q does not match %s", name, valid)
		}
	}
	return nil
}

// object is a JSON object to be sent.
type object = map[string]any

func orElse(s, fallback string) string {
	if s != "" {
		return s
	}
	return fallback
}
