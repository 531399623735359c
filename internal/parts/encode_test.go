// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"encoding/json"
	"testing"
)

func FuzzAFrameIsEncodedAsEncodingJSONDoes(f *testing.F) {
	for _, text := range []string{"", "plain", "two\nlines", `"quoted" \`, "<a href=x>&amp;", "Grüße 世界 \u2028", "broken \xff", "\x00\x7f"} {
		f.Add(int64(7), "Assistant", "Text", "0", "", text, "", false)
		f.Add(int64(1<<40), text, text, text, text, text, text, true)
	}
	f.Fuzz(func(t *testing.T, seq int64, role, kind, id, name, text, url string, isError bool) {
		frame := Frame{Seq: seq, Role: role, Part: Part{Type: Type(kind), ID: id, Name: name, Text: text, URL: url, IsError: isError}}
		want, err := json.Marshal(frame)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(frame.AppendJSON(nil)); got != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
