// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree answers what a chat's place among its parents and sub-chats means for it. It is pure: callers give it
// the chats of one namespace.
package tree

import (
	"errors"
	"fmt"
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// Family is all chats of a namespace, by name and by parent.
type Family struct {
	byName   map[string]*v1beta1.Chat
	children map[string][]*v1beta1.Chat
}

// Of makes a family of the chats.
func Of(chats []v1beta1.Chat) *Family {
	f := &Family{byName: make(map[string]*v1beta1.Chat, len(chats)), children: map[string][]*v1beta1.Chat{}}
	for i := range chats {
		chat := &chats[i]
		f.byName[chat.Name] = chat
		if parent := chat.Spec.ParentRef; parent != nil {
			f.children[parent.Name] = append(f.children[parent.Name], chat)
		}
	}
	return f
}

// Ancestors are the chats above the chat, nearest first; complete is false when one of them does not exist, or when
// they go in a circle or deeper than any limit allows.
func (f *Family) Ancestors(chat *v1beta1.Chat) (above []*v1beta1.Chat, complete bool) {
	for parent := chat.Spec.ParentRef; parent != nil; {
		next := f.byName[parent.Name]
		if next == nil || next.Name == chat.Name || len(above) > v1beta1.MaxFamilyDepth {
			return above, false
		}
		above = append(above, next)
		parent = next.Spec.ParentRef
	}
	return above, true
}

// Root is how members of a family name the chat at its top, and the workspace that they share.
func Root(top *v1beta1.Chat, hasWorkspace bool) *v1beta1.FamilyRoot {
	root := &v1beta1.FamilyRoot{Name: top.Name, UID: string(top.UID)}
	if hasWorkspace { // It has the name of its chat.
		root.Workspace = top.Name
	}
	return root
}

// Top reads the chats above one up to the top of the family.
func Top(chat *v1beta1.Chat, get func(name string) (*v1beta1.Chat, error)) (*v1beta1.Chat, error) {
	for range v1beta1.MaxFamilyDepth + 1 {
		if chat.Spec.ParentRef == nil {
			return chat, nil
		}
		parent, err := get(chat.Spec.ParentRef.Name)
		if err != nil {
			return nil, fmt.Errorf("reading chat %s, the parent of this one: %w", chat.Spec.ParentRef.Name, err)
		}
		if uid := chat.Status.Internal.ParentUID; uid != "" && uid != string(parent.UID) {
			return nil, fmt.Errorf("chat %s, the parent of this one, is gone", parent.Name)
		}
		chat = parent
	}
	return nil, errors.New("the chats above this one go deeper than any family")
}

// Descendants are the chats below the chat, at all depths.
func (f *Family) Descendants(chat *v1beta1.Chat) []*v1beta1.Chat {
	var all []*v1beta1.Chat
	seen := map[string]bool{chat.Name: true}
	for next := f.children[chat.Name]; len(next) > 0; {
		var deeper []*v1beta1.Chat
		for _, child := range next {
			if !seen[child.Name] {
				seen[child.Name] = true
				all = append(all, child)
				deeper = append(deeper, f.children[child.Name]...)
			}
		}
		next = deeper
	}
	return all
}

// Suspended reports whether the chat, or one above it, is suspended.
func Suspended(chat *v1beta1.Chat, above []*v1beta1.Chat) bool {
	return chat.Spec.Suspend || slices.ContainsFunc(above, func(c *v1beta1.Chat) bool { return c.Spec.Suspend })
}

// Archiving is the topmost of the chat and those above it that is to be archived, and so all of its family with it; nil
// if there is none.
func Archiving(chat *v1beta1.Chat, above []*v1beta1.Chat) (top *v1beta1.Chat) {
	if chat.Spec.Archived {
		top = chat
	}
	for _, ancestor := range above {
		if ancestor.Spec.Archived {
			top = ancestor
		}
	}
	return top
}

// AtWork names a chat among the top one and its descendants, but for the one called self, that is neither Waiting nor
// in Error; empty if there is none. Of itself a chat knows better: it may be about to come to rest.
func (f *Family) AtWork(top *v1beta1.Chat, self string) string {
	for _, member := range append([]*v1beta1.Chat{top}, f.Descendants(top)...) {
		if member.Name == self {
			continue
		}
		if member.Status.Phase.HasTurn() {
			return member.Name
		}
	}
	return ""
}

// Exceeds says which limit of the root a chat that has not begun exceeds: how deep it is, or how many chats of the
// family come before it. Archived ones give their place. It is empty when there is none.
func (f *Family) Exceeds(chat *v1beta1.Chat, above []*v1beta1.Chat) (limit string) {
	if len(above) == 0 {
		return ""
	}
	root := above[len(above)-1]
	if len(above) > int(root.Spec.MaxDepthOrDefault()) {
		return "maxDepth"
	}
	before := 0
	for _, member := range f.Descendants(root) {
		if member.Name != chat.Name && !member.Status.Archived && comesBefore(member, chat) {
			before++
		}
	}
	if before >= int(root.Spec.MaxSubChatsOrDefault()) {
		return "maxSubChats"
	}
	return ""
}

// comesBefore reports whether the member has its place before a chat that has yet to begin:
// it has begun, or it is older.
func comesBefore(member, chat *v1beta1.Chat) bool {
	if member.Status.History.Version > 0 {
		return true
	}
	if c := member.CreationTimestamp.Compare(chat.CreationTimestamp.Time); c != 0 {
		return c < 0
	}
	return member.Name < chat.Name
}

// Unbegun are the chats of the chat's family that have not begun: one of them may wait for the place of another.
func (f *Family) Unbegun(chat *v1beta1.Chat) (waiting []*v1beta1.Chat) {
	root := chat
	if above, _ := f.Ancestors(chat); len(above) > 0 {
		root = above[len(above)-1]
	}
	for _, member := range f.Descendants(root) {
		if member.Status.History.Version == 0 {
			waiting = append(waiting, member)
		}
	}
	return waiting
}
