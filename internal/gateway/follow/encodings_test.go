// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"strings"
	"testing"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/test/kit/check"
)

func TestChatStatusIsEncodedOncePerVersion(t *testing.T) {
	chat := newChat("uid-1")
	chat.ResourceVersion = "7"
	known := NewEncodings()
	encode := func(name, message string) stream.Event {
		t.Helper()
		event, err := known.event(chat, name, stream.Status{Message: message})
		check.OK(t, err)
		return event
	}
	first, second := encode(stream.EventStatus, "a"), encode(stream.EventStatus, "a")
	if &first.Data[0] != &second.Data[0] {
		t.Error("it was encoded twice")
	}
	if got := encode(stream.EventError, "b"); !strings.Contains(string(got.Data), `"b"`) {
		t.Errorf("another event is %s", got.Data)
	}
	chat.ResourceVersion = "8"
	if got := encode(stream.EventStatus, "c"); !strings.Contains(string(got.Data), `"c"`) {
		t.Errorf("the event of another version is %s", got.Data)
	}
	chat.UID = "uid-2"
	if got := encode(stream.EventStatus, "d"); !strings.Contains(string(got.Data), `"d"`) {
		t.Errorf("the event of another chat is %s", got.Data)
	}
}

func TestWhatIsKeptOfEncodingsIsBounded(t *testing.T) {
	chat := newChat("uid-1")
	chat.ResourceVersion = "7"
	known := NewEncodings()
	if _, err := known.event(chat, stream.EventStatus, strings.Repeat("x", maxEncoding)); err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "large encodings that are kept", 0, known.known.Len())
	for range 2 * maxEncodings {
		chat.ResourceVersion += "1"
		if _, err := known.event(chat, stream.EventStatus, "x"); err != nil {
			t.Fatal(err)
		}
	}
	check.Equal(t, "encodings that are kept", maxEncodings, known.known.Len())
}
