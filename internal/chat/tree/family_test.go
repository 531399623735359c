// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// tree is root -> {a -> {deep}, b}, and a stranger; lost names a parent that is not there, and x and y name each other.
func tree(change func(map[string]*v1beta1.Chat)) (*Family, map[string]*v1beta1.Chat) {
	created := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var chats []v1beta1.Chat
	for _, c := range [][2]string{{"root", ""}, {"a", "root"}, {"b", "root"}, {"deep", "a"}, {"stranger", ""},
		{"lost", "nobody"}, {"x", "y"}, {"y", "x"}} {
		chat := v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: c[0], CreationTimestamp: created}}
		if c[1] != "" {
			chat.Spec.ParentRef = &v1beta1.ChatReference{Name: c[1]}
		}
		chat.Status.Phase = v1beta1.ChatWaiting
		chats = append(chats, chat)
	}
	byName := map[string]*v1beta1.Chat{}
	for i := range chats {
		byName[chats[i].Name] = &chats[i]
	}
	if change != nil {
		change(byName)
	}
	return Of(chats), byName
}

func TestAncestorsAreFoundAsFarAsTheyExist(t *testing.T) {
	f, chats := tree(nil)
	for name, want := range map[string]struct {
		above    []string
		complete bool
	}{
		"root": {nil, true}, "a": {[]string{"root"}, true}, "deep": {[]string{"a", "root"}, true},
		"lost": {nil, false}, "x": {[]string{"y"}, false},
	} {
		above, complete := f.Ancestors(chats[name])
		if len(above) != len(want.above) || complete != want.complete {
			t.Errorf("%s has %d chats above, complete %v", name, len(above), complete)
			continue
		}
		for i := range above {
			if above[i].Name != want.above[i] {
				t.Errorf("%s: above is %s", name, above[i].Name)
			}
		}
	}
	if n := len(f.Descendants(chats["root"])); n != 3 {
		t.Errorf("root has %d descendants", n)
	}
	if n := len(f.Descendants(chats["x"])); n != 1 {
		t.Errorf("a circle has %d descendants", n)
	}
}

func TestSuspensionAndArchivingComeFromAbove(t *testing.T) {
	f, chats := tree(func(c map[string]*v1beta1.Chat) {
		c["root"].Spec.Suspend = true
		c["a"].Spec.Archived = true
		c["root"].Status.Phase = v1beta1.ChatRunning
	})
	above, _ := f.Ancestors(chats["deep"])
	if !Suspended(chats["deep"], above) || Suspended(chats["stranger"], nil) {
		t.Error("suspension does not come from above")
	}
	top := Archiving(chats["deep"], above)
	if top == nil || top.Name != "a" || Archiving(chats["b"], above[1:]) != nil {
		t.Errorf("the topmost to be archived is %v", top)
	}
	if got := f.AtWork(top, "deep"); got != "" {
		t.Errorf("%s is at work, which is not below", got)
	}
	f, chats = tree(func(c map[string]*v1beta1.Chat) { c["deep"].Status.Phase = v1beta1.ChatRequiresAction })
	for self, want := range map[string]string{"a": "deep", "deep": ""} { // Of itself a chat knows better.
		if got := f.AtWork(chats["a"], self); got != want {
			t.Errorf("%s is told that %q is at work", self, got)
		}
	}
}

func TestArchivedChatFreesItsFamilySlot(t *testing.T) {
	one := func(change func(all map[string]*v1beta1.Chat)) (*Family, map[string]*v1beta1.Chat) {
		return tree(func(all map[string]*v1beta1.Chat) {
			all["root"].Spec.Limits = &v1beta1.ChatLimits{MaxSubChats: new(int32(1)), MaxDepth: new(int32(2))}
			change(all)
		})
	}
	for name, c := range map[string]struct {
		change func(all map[string]*v1beta1.Chat)
		chat   string
		want   string
	}{
		"one that is archived gives its place": {
			func(all map[string]*v1beta1.Chat) { all["a"].Status.Archived = true }, "b", ""},
		"one that has begun keeps it from older ones": {
			func(all map[string]*v1beta1.Chat) { all["b"].Status.History.Version = 1 }, "a", "maxSubChats"},
		"none has begun": {func(map[string]*v1beta1.Chat) {}, "b", "maxSubChats"},
	} {
		f, chats := one(c.change)
		above, _ := f.Ancestors(chats[c.chat])
		if got := f.Exceeds(chats[c.chat], above); got != c.want {
			t.Errorf("%s: exceeds %q", name, got)
		}
	}
}

// Security (a hostile sub-chat): can spend what its budget and the family's limits allow, which its parent cannot see
// before.
func TestTheRootLimitsItsFamily(t *testing.T) {
	for name, c := range map[string]struct {
		limits v1beta1.ChatLimits
		chat   string
		want   string
	}{
		"sub-chats of sub-chats":     {v1beta1.ChatLimits{}, "deep", "maxDepth"},
		"as deep as may be":          {v1beta1.ChatLimits{MaxDepth: new(int32(2))}, "deep", ""},
		"the first":                  {v1beta1.ChatLimits{MaxSubChats: new(int32(1))}, "a", ""},
		"one too many":               {v1beta1.ChatLimits{MaxSubChats: new(int32(1))}, "b", "maxSubChats"},
		"a root is in nobody's way":  {v1beta1.ChatLimits{MaxSubChats: new(int32(0))}, "root", ""},
		"no sub-chat where none may": {v1beta1.ChatLimits{MaxDepth: new(int32(0))}, "a", "maxDepth"},
	} {
		f, chats := tree(func(all map[string]*v1beta1.Chat) { all["root"].Spec.Limits = &c.limits })
		above, _ := f.Ancestors(chats[c.chat])
		if got := f.Exceeds(chats[c.chat], above); got != c.want {
			t.Errorf("%s: exceeds %q", name, got)
		}
	}
}
