// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatclass finds the ChatClass of a chat, and what is in force of a chat that has one. It is pure.
package chatclass

import (
	"fmt"
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// Resolve is the class of the chat: the one that it names, or the namespace's default; nil if it has none. The error is
// why the one that it names cannot be found.
func Resolve(classes []v1beta1.ChatClass, spec *v1beta1.ChatSpec) (*v1beta1.ChatClass, *v1beta1.GenerationError) {
	if spec.ChatClassName == "" {
		return FirstDefault(classes), nil
	}
	if class := Find(classes, spec.ChatClassName); class != nil {
		return class, nil
	}
	return nil, &v1beta1.GenerationError{
		Reason:  v1beta1.ErrorChatClassNotFound,
		Message: fmt.Sprintf("ChatClass %s, which spec.chatClassName names, does not exist", spec.ChatClassName),
		Advice:  "Create it, or change the reference",
	}
}

// Find is the class of that name, or nil.
func Find(classes []v1beta1.ChatClass, name string) *v1beta1.ChatClass {
	for i := range classes {
		if classes[i].Name == name {
			return &classes[i]
		}
	}
	return nil
}

// FirstDefault is the first class by name that says default: true, or nil.
func FirstDefault(classes []v1beta1.ChatClass) *v1beta1.ChatClass {
	var first *v1beta1.ChatClass
	for i := range classes {
		if c := &classes[i]; c.Spec.Default && c.DeletionTimestamp.IsZero() && (first == nil || c.Name < first.Name) {
			first = c
		}
	}
	return first
}

// References are the ChatModelConfigs that a class names.
func References(class *v1beta1.ChatClassSpec) []v1beta1.ModelConfigReference {
	var refs []v1beta1.ModelConfigReference
	if class.Restrictions != nil {
		refs = slices.Clone(class.Restrictions.ModelConfigs)
	}
	named := []*v1beta1.ModelConfigReference{class.Defaults.ModelConfigRef}
	if class.Defaults.Advisor != nil {
		named = append(named, class.Defaults.Advisor.ModelConfigRef)
	}
	if class.Defaults.Compaction != nil {
		named = append(named, class.Defaults.Compaction.ModelConfigRef)
	}
	for _, ref := range named {
		if ref != nil {
			refs = append(refs, *ref)
		}
	}
	return refs
}
