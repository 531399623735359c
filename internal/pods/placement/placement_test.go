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
	starting := func(p *Pod) { p.Ready = false }
	for name, c := range map[string]struct {
		pods []Pod
		want Want
		load map[string]int
		pick Choice
	}{
		"no pod":           {nil, want, nil, Choice{}},
		"the only pod":     {[]Pod{pod("a", nil)}, want, nil, Choice{Pod: "a"}},
		"the least loaded": {[]Pod{pod("a", nil), pod("b", nil)}, want, map[string]int{"a": 1}, Choice{Pod: "b"}},
		"a full one while another one starts": {[]Pod{pod("a", nil), pod("b", starting)}, want, map[string]int{"a": 2},
			Choice{Pod: "a"}},
		"a full one, with one more to start": {[]Pod{pod("a", nil)}, want, map[string]int{"a": 2},
			Choice{Pod: "a", Grow: true}},
		"a full one beside a full starting one": {[]Pod{pod("a", nil), pod("b", starting)}, want,
			map[string]int{"a": 3, "b": 2}, Choice{Pod: "a", Grow: true}},
		"one with room before a full one": {[]Pod{pod("a", nil), pod("b", nil)}, want, map[string]int{"a": 2, "b": 1},
			Choice{Pod: "b"}},
		"none that has its surge": {[]Pod{pod("a", nil)}, want, map[string]int{"a": 6}, Choice{}},
		"a starting one if all ready ones have their surge": {[]Pod{pod("a", nil), pod("b", starting)}, want,
			map[string]int{"a": 6}, Choice{Pod: "b"}},
		"no starting one that is full": {[]Pod{pod("a", starting)}, want, map[string]int{"a": 2}, Choice{}},
		"none that cannot be used":     {[]Pod{pod("a", func(p *Pod) { p.Usable = false })}, want, nil, Choice{}},
		"none of another template":     {[]Pod{pod("a", func(p *Pod) { p.Template = "old" })}, want, nil, Choice{}},
		"a ready one before a starting one": {[]Pod{pod("a", starting), pod("b", nil)}, want,
			map[string]int{"b": 1}, Choice{Pod: "b"}},
		"a starting one before a new one": {[]Pod{pod("a", starting)}, want, nil, Choice{Pod: "a"}},
		"the preferred one": {[]Pod{pod("a", nil), pod("b", nil)},
			Want{Template: "t", Capacity: 2, Prefer: "b"}, map[string]int{"b": 1}, Choice{Pod: "b"}},
		"not the preferred one if it is full": {[]Pod{pod("a", nil), pod("b", nil)},
			Want{Template: "t", Capacity: 2, Prefer: "b"}, map[string]int{"b": 2}, Choice{Pod: "a"}},
		"none that is too old": {[]Pod{pod("a", nil)}, Want{Template: "t", Capacity: 2, After: t0}, nil, Choice{}},
		"one that is young enough": {[]Pod{pod("a", func(p *Pod) { p.Created = t0.Add(1) })},
			Want{Template: "t", Capacity: 2, After: t0}, nil, Choice{Pod: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := choose(c.pods, c.want, func(name string) int { return c.load[name] }); got != c.pick {
				t.Errorf("got %+v, want %+v", got, c.pick)
			}
		})
	}
}

func TestAPodIsBookedUntilItIsFull(t *testing.T) {
	l, want := NewLedger(), Want{Template: "t", Capacity: 2}
	pods := []Pod{pod("a", func(p *Pod) { p.Ready = false })}
	for _, chat := range []string{"1", "2", "1"} { // A chat's own place does not stand in its way.
		if got := l.Choose("ns", pods, want, chat); got.Pod != "a" {
			t.Fatalf("chat %s got %q", chat, got.Pod)
		}
	}
	if got := l.Choose("ns", pods, want, "3"); got.Pod != "" {
		t.Errorf("a third chat got %q", got.Pod)
	}
	l.Book("1", "")
	if got := l.Choose("ns", pods, want, "3"); got.Pod != "a" {
		t.Errorf("after one chat ended, the third got %q", got.Pod)
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
	if got := l.Choose("ns", nil, want, "2"); got.Pod != "new" {
		t.Errorf("got %q", got.Pod)
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
	if got := l.Choose("ns", pods, want, "2"); got.Pod != "" {
		t.Errorf("a drained pod was chosen: %q", got.Pod)
	}
	l.Forget("ns", "a")
	if l.Choose("ns", pods, want, "2").Pod == "" {
		t.Error("a new pod of the same name is not chosen")
	}
}
