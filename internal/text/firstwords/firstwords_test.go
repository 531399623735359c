// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package firstwords

import (
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func TestTitleIsMadeOfFirstMessageWords(t *testing.T) {
	text := func(text string) v1beta1.MessagePart {
		return v1beta1.MessagePart{Type: v1beta1.PartText, Text: &text}
	}
	for name, c := range map[string]struct {
		spec v1beta1.ChatMessageSpec
		want string
	}{
		"a short message stays as it is": {v1beta1.ChatMessageSpec{Content: "What time is it?"}, "What time is it?"},
		"more words are left out": {v1beta1.ChatMessageSpec{Content: "one two three four five six seven"},
			"one two three four five six…"},
		"white space is one space": {v1beta1.ChatMessageSpec{Content: "  one\n\ttwo  \r\n three "},
			"one two three"},
		"characters are counted, not bytes": {v1beta1.ChatMessageSpec{Content: strings.Repeat("ß", 80)},
			strings.Repeat("ß", 80)},
		"an emoji stays whole": {v1beta1.ChatMessageSpec{Content: "👩\u200d💻 help"}, "👩\u200d💻 help"},
		"nothing has no title": {v1beta1.ChatMessageSpec{Content: " \n\t"}, ""},
		"six long words have one ellipsis": {v1beta1.ChatMessageSpec{Content: strings.Repeat(strings.Repeat("y", 15)+" ",
			9)},
			strings.Repeat(strings.Repeat("y", 15)+" ", 4) + strings.Repeat("y", 15) + "…"},
		"parts count": {v1beta1.ChatMessageSpec{Parts: []v1beta1.MessagePart{text("one\ntwo"), text("three")}},
			"one two three"},
		"a file has no words": {v1beta1.ChatMessageSpec{Parts: []v1beta1.MessagePart{
			{Type: v1beta1.PartFile, File: &v1beta1.MessageFile{Name: "a.png"}}, text("see\x1b[2J this"),
		}}, "see [2J this"},
		"what is meant for the model": {v1beta1.ChatMessageSpec{Content: "the build is red",
			Visibility: v1beta1.VisibleToModel}, ""},
		"what the cache keeps has none": {v1beta1.ChatMessageSpec{}, ""},
		"a megabyte is no worry": {v1beta1.ChatMessageSpec{Content: strings.Repeat("好", 300_000)},
			strings.Repeat("好", 79) + "…"},
	} {
		check.Equal(t, name, c.want, Of(&c.spec))
	}
}
