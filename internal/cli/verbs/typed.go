// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"slices"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli/render"
)

// kindByWord are the kinds of the objects that the words of a usage line stand for.
var kindByWord = map[string]string{"CHAT": "chat", "NAME": "chat", "MESSAGE": "chatmessage"}

// plainNames are the arguments of a verb with that usage line, objects without their types.
func plainNames(use string, args []string) ([]string, error) {
	names := slices.Clone(args)
	for i, word := range strings.Fields(use)[1:] {
		kind := kindByWord[strings.Trim(word, "[]")]
		if kind == "" || i >= len(names) {
			continue
		}
		var err error
		if names[i], err = plainName(kind, names[i]); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// plainName is the name in NAME or TYPE/NAME, where the type is one of the kind: chat, chats, chat.parley.dev.
func plainName(kind, typed string) (string, error) {
	resource, name, isTyped := strings.Cut(typed, "/")
	if !isTyped {
		return typed, nil
	}
	singular, group, _ := strings.Cut(strings.ToLower(resource), ".")
	group = strings.TrimPrefix(group, v1alpha1.GroupVersion.Version+".")
	if strings.TrimSuffix(singular, "s") != kind || group != "" && group != v1alpha1.GroupVersion.Group || name == "" {
		return "", usageError{fmt.Errorf("%q names no %s: type its name, or %s/NAME", typed, kind, kind)}
	}
	return name, nil
}

// findCall finds the call that a person means by an id, by its beginning or by its end; nil if there is none.
func findCall(calls []v1alpha1.PendingToolCall, typed string) (*v1alpha1.PendingToolCall, error) {
	var found []v1alpha1.PendingToolCall
	for i := range calls {
		id := calls[i].ID
		if id == typed {
			return &calls[i], nil
		}
		if typed != "" && (strings.HasPrefix(id, typed) || strings.HasSuffix(id, typed)) {
			found = append(found, calls[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return &found[0], nil
	}
	return nil, usageError{fmt.Errorf("%q can be %s: type more of the id", typed, render.NamesOf(found))}
}
