// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"math"
	"strings"
	"testing"
)

func TestBeforeComparesAttemptsOfOneChat(t *testing.T) {
	at := func(uid string, version int64, attempt int32) Fence { return Fence{uid, version, attempt} }
	for name, c := range map[string]struct {
		a, b Fence
		want bool
	}{
		"the same":                            {at("u", 2, 1), at("u", 2, 1), false},
		"a later attempt":                     {at("u", 2, 1), at("u", 2, 2), true},
		"an earlier attempt":                  {at("u", 2, 2), at("u", 2, 1), false},
		"a later version, an earlier attempt": {at("u", 2, 3), at("u", 10, 1), true},
		"an earlier version":                  {at("u", 10, 1), at("u", 2, 3), false},
		"another chat":                        {at("u", 2, 1), at("v", 3, 1), false},
	} {
		if got := c.a.Before(c.b); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestTheNameOfAResultNamesItsChat(t *testing.T) {
	for _, chat := range []string{"c", "a-1", "a-1-2", "a.b", strings.Repeat("x", 200)} {
		name := Fence{"u", math.MaxInt64, math.MaxInt32}.ResultName(chat)
		if got := ChatOfResult(name); got != chat {
			t.Errorf("%s is taken for a result of chat %q", name, got)
		}
	}
	for _, name := range []string{"", "c", "c-1", "c-1-x", "-1-2", "c-x-2", SummaryName("c", 2)} {
		if got := ChatOfResult(name); got != "" {
			t.Errorf("%s is taken for a result of chat %q", name, got)
		}
	}
}

func TestEachAttemptHasAResultOfItsOwn(t *testing.T) {
	names := map[string]Fence{}
	for version := range int64(30) {
		for attempt := range int32(30) {
			f := Fence{"u", version, attempt}
			if other, taken := names[f.ResultName("c")]; taken {
				t.Errorf("%v and %v have the result %s", f, other, f.ResultName("c"))
			}
			names[f.ResultName("c")] = f
		}
	}
}
