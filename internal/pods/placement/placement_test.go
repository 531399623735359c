// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"
	"time"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func pod(name string, change func(*Pod)) Pod {
	p := Pod{Name: name, Template: "t", Created: t0, Usable: true, Ready: true}
	if change != nil {
		change(&p)
	}
	return p
}

func TestChoice(t *testing.T) {
	want := Want{Template: "t", Capacity: 2}
	for name, c := range map[string]struct {
		pods []Pod
		want Want
		load map[string]int
		pick string
	}{
		"no pod":                   {nil, want, nil, ""},
		"the only pod":             {[]Pod{pod("a", nil)}, want, nil, "a"},
		"the least loaded":         {[]Pod{pod("a", nil), pod("b", nil)}, want, map[string]int{"a": 1}, "b"},
		"none that is full":        {[]Pod{pod("a", nil)}, want, map[string]int{"a": 2}, ""},
		"none that cannot be used": {[]Pod{pod("a", func(p *Pod) { p.Usable = false })}, want, nil, ""},
		"none of another template": {[]Pod{pod("a", func(p *Pod) { p.Template = "old" })}, want, nil, ""},
		"a ready one before a starting one": {[]Pod{pod("a", func(p *Pod) { p.Ready = false }), pod("b", nil)}, want,
			map[string]int{"b": 1}, "b"},
		"a starting one before a new one": {[]Pod{pod("a", func(p *Pod) { p.Ready = false })}, want, nil, "a"},
		"the preferred one": {[]Pod{pod("a", nil), pod("b", nil)},
			Want{Template: "t", Capacity: 2, Prefer: "b"}, map[string]int{"b": 1}, "b"},
		"not the preferred one if it is full": {[]Pod{pod("a", nil), pod("b", nil)},
			Want{Template: "t", Capacity: 2, Prefer: "b"}, map[string]int{"b": 2}, "a"},
		"none that is too old": {[]Pod{pod("a", nil)}, Want{Template: "t", Capacity: 2, After: t0}, nil, ""},
		"one that is young enough": {[]Pod{pod("a", func(p *Pod) { p.Created = t0.Add(1) })},
			Want{Template: "t", Capacity: 2, After: t0}, nil, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := choose(c.pods, c.want, func(name string) int { return c.load[name] })
			if got != c.pick || ok != (c.pick != "") {
				t.Errorf("got %q, %v", got, ok)
			}
		})
	}
}

func TestAPodIsBookedUntilItIsFull(t *testing.T) {
	l, want := NewLedger(), Want{Template: "t", Capacity: 2}
	pods := []Pod{pod("a", nil)}
	for _, chat := range []string{"1", "2", "1"} { // A chat's own place does not stand in its way.
		if got, _ := l.Choose("ns", pods, want, chat); got != "a" {
			t.Fatalf("chat %s got %q", chat, got)
		}
	}
	if got, ok := l.Choose("ns", pods, want, "3"); ok {
		t.Errorf("a third chat got %q", got)
	}
	l.Book("1", "")
	if got, _ := l.Choose("ns", pods, want, "3"); got != "a" {
		t.Errorf("after one chat ended, the third got %q", got)
	}
}

func TestNewPodIsSharedBeforeCacheShowsIt(t *testing.T) {
	l, want := NewLedger(), Want{Template: "t", Capacity: 2}
	l.Created("ns", pod("new", nil), "1")
	if !l.JustCreated("ns", "new", t0) || l.JustCreated("other", "new", t0) {
		t.Error("the ledger does not know what it created, or where")
	}
	if l.JustCreated("ns", "new", t0.Add(MaxUnseen)) {
		t.Error("a pod that no cache shows after so long still counts as just created")
	}
	if got, _ := l.Choose("ns", nil, want, "2"); got != "new" {
		t.Errorf("got %q", got)
	}
	l.Seen("ns", "new")
	if l.JustCreated("ns", "new", t0) {
		t.Error("a pod that the cache shows still counts as just created")
	}
}

func TestIdlePodIsDrainedAndGetsNoChats(t *testing.T) {
	l, want := NewLedger(), Want{Template: "t", Capacity: 2}
	pods := []Pod{pod("a", nil)}
	l.Book("1", "a")
	if l.Drain("a") {
		t.Error("a pod with a chat was drained")
	}
	l.Book("1", "")
	if !l.Drain("a") || l.Load("a") != 0 {
		t.Error("an idle pod was not drained")
	}
	if got, ok := l.Choose("ns", pods, want, "2"); ok {
		t.Errorf("a drained pod was chosen: %q", got)
	}
	l.Forget("ns", "a")
	if _, ok := l.Choose("ns", pods, want, "2"); !ok {
		t.Error("a new pod of the same name is not chosen")
	}
}
