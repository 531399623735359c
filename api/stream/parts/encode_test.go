// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"encoding/json"
	"testing"
	"time"
)

func FuzzAFrameIsEncodedAsEncodingJSONDoes(f *testing.F) {
	for _, text := range []string{"", "plain", "two\nlines", `"quoted" \`, "<a href=x>&amp;", "Grüße 世界 \u2028",
		"broken \xff", "\x00\x7f"} {
		f.Add(int64(7), "Assistant", "Text", "0", "", text, "", false, int64(0))
		f.Add(int64(1<<40), text, text, text, text, text, text, true, int64(1_790_000_000_123_456_789))
	}
	f.Fuzz(func(t *testing.T, seq int64, role, kind, id, name, text, url string, isError bool, at int64) {
		frame := Frame{Seq: seq, Role: role, Part: Part{Type: Type(kind), ID: id, Name: name, Text: text, URL: url,
			IsError: isError}}
		if at != 0 {
			frame.Part.At = time.Unix(0, at).UTC()
		}
		want, err := json.Marshal(frame)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(frame.AppendJSON(nil)); got != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
