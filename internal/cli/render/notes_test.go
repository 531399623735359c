// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/api/stream"
)

func noteEvent(uid string, index, generation int64) stream.Event {
	return stream.Event{Name: "note", Data: fmt.Appendf(nil,
		`{"index":%d,"generation":%d,"message":{"name":%q,"uid":%q,"content":"note %s","createdBy":"anna"}}`, index,
		generation,
		uid, uid, uid)}
}

func TestResumedStreamRepeatsNoNote(t *testing.T) {
	var out, errOut strings.Builder
	p := NewPrinter(&out, &errOut, false, hints)
	p.NotesFrom = -1 // From now on.
	for _, e := range []stream.Event{
		{Name: "status", Data: []byte(`{"length":4}`)},
		noteEvent("new", 4, 1),
		// The stream is lost here.
		noteEvent("old", 2, 1), noteEvent("new", 4, 1), noteEvent("newer", 6, 1),
		noteEvent("new", 4, 2),
		{Name: "note_deleted", Data: []byte(`{"name":"new","uid":"new"}`)},
	} {
		if err := p.Event(e, true); err != nil {
			t.Fatal(err)
		}
	}
	want := "▎[note of anna:]\n▎  note new\n▎[note of anna:]\n▎  note newer\n▎[note of anna, changed:]\n▎  note new\n"
	if out.String() != want || errOut.String() != "▎[note new was deleted]\n" {
		t.Errorf("it shows %q, %q", out.String(), errOut.String())
	}
}
