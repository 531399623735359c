// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"parley.dev/parley/api/v1beta1"
)

// Refuse refuses the first field of a struct that asks for what chats cannot do. The fields are json.RawMessage. Their
// tag instead is what a client may do, and their tag harmless is a value that asks for nothing.
func Refuse(fields any) error {
	for field, value := range reflect.ValueOf(fields).Fields() {
		raw := json.RawMessage(value.Bytes())
		if IsSet(raw) && strings.TrimSpace(string(raw)) != field.Tag.Get("harmless") {
			name := field.Tag.Get("json")
			return Unsupported(name, "%s cannot be honoured: %s", name, field.Tag.Get("instead"))
		}
	}
	return nil
}

// IsSet reports whether a field has a value that is not empty.
func IsSet(field json.RawMessage) bool {
	switch strings.TrimSpace(string(field)) {
	case "", "null", "{}", "[]", `""`:
		return false
	}
	return true
}

// Content is a list of parts. A text stands for one part of the type text.
type Content[P any] []P

// UnmarshalJSON reads either form.
func (c *Content[P]) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		raw = fmt.Appendf(nil, `[{"type": "text", "text": %s}]`, raw)
	}
	var parts []P
	if json.Unmarshal(raw, &parts) != nil {
		return Invalid("messages", "content is neither a text nor a list of parts")
	}
	*c = parts
	return nil
}

// Parts converts the parts of a message. Blank texts are omitted. Param is the name of the content.
func (c Content[P]) Parts(param string, convert func(part *P, at string) (v1beta1.MessagePart, error)) (
	[]v1beta1.MessagePart, error) {
	return Each(c, param, func(p *P, at string) ([]v1beta1.MessagePart, error) {
		part, err := convert(p, at)
		if part.Text != nil && strings.TrimSpace(*part.Text) == "" {
			return nil, err
		}
		return []v1beta1.MessagePart{part}, err
	})
}

// Each converts the elements of a list, whose name in the request is param.
func Each[T, R any](list []T, param string, convert func(element *T, at string) ([]R, error)) (all []R, err error) {
	for i := range list {
		some, err := convert(&list[i], fmt.Sprintf("%s[%d]", param, i))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
