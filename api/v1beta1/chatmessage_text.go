// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "strings"

// Text is what the message says: neither thoughts nor calls of tools, and of several texts one after the other.
func (s *ChatMessageSpec) Text() string {
	if len(s.Parts) == 0 {
		return s.Content
	}
	var text strings.Builder
	text.WriteString(s.Content)
	for i := range s.Parts {
		if part := &s.Parts[i]; part.Type == PartText && part.Text != nil {
			text.WriteString(*part.Text)
		}
	}
	return text.String()
}

// IsNote reports whether the message is for people alone, which no model may be told.
func (s *ChatMessageSpec) IsNote() bool { return s.Visibility == VisibleToUsers }
