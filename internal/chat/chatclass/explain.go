// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass

import (
	"reflect"
	"strings"

	"parley.dev/parley/api/v1beta1"
)

// Source is who has said a setting that is in force.
type Source string

// The sources.
const (
	FromChat             Source = "Chat"
	FromClass            Source = "ChatClass"
	FromRestrictions     Source = "Restrictions"
	FromNamespaceDefault Source = "NamespaceDefault"
)

// Setting is one that is in force, and where it comes from.
type Setting struct {
	// Path of the field in Chat.spec, or in the spec of the ChatClass for its preambles: "limits.maxSteps".
	Path string `json:"path"`
	// Value that is in force.
	Value any `json:"value"`
	// From is who has said it: the chat; the defaults of its class, or its preamble; the restrictions of its class; the
	// class that is the namespace's default, which speaks to every chat.
	From Source `json:"from"`
}

// Explain lists the settings of the chat that are in force, in the order of the API, and the fields of its own that do
// not count. The preambles stand apart from the system prompt. Fields that are not set are omitted. class is that
// of the chat and namespace the one whose namespacePreamble counts; either may be nil.
func Explain(chat *v1beta1.Chat, class, namespace *v1beta1.ChatClass) (all []Setting, ignored []string) {
	spec := &v1beta1.ChatClassSpec{}
	if class != nil {
		spec = &class.Spec
	}
	if mode := chat.EffectiveMode(); mode != "" {
		all = append(all, Setting{"mode", mode, FromChat})
	}
	if namespace != nil {
		all = append(all, Setting{"namespacePreamble", namespace.Spec.NamespacePreamble, FromNamespaceDefault})
	}
	if spec.Preamble != "" {
		all = append(all, Setting{"preamble", spec.Preamble, FromClass})
	}
	s := stepsOf(&chat.Spec.ChatSettings, spec)
	for i := range fields {
		f := &fields[i]
		all = explain(all, string(f.name), f.merged, f.value(&s.said), f.value(&s.merged), f.value(&s.bounded))
	}
	return all, s.ignored
}

// explain adds the value of a field, or each of its own fields where these count for themselves.
func explain(all []Setting, path string, each bool, said, merged, bounded reflect.Value) []Setting {
	switch {
	case bounded.IsZero():
		return all
	case each:
		return explainEach(all, path, orZero(said), orZero(merged), bounded.Elem())
	}
	from := FromRestrictions
	switch {
	case same(said, bounded):
		from = FromChat
	case same(merged, bounded):
		from = FromClass
	}
	return append(all, Setting{path, bare(bounded).Interface(), from})
}

func explainEach(all []Setting, path string, said, merged, bounded reflect.Value) []Setting {
	for i := range bounded.NumField() {
		field := bounded.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous { // Its fields are those of the whole.
			all = explainEach(all, path, said.Field(i), merged.Field(i), bounded.Field(i))
			continue
		}
		all = explain(all, path+"."+name, false, said.Field(i), merged.Field(i), bounded.Field(i))
	}
	return all
}

// orZero is what the value points to, or one that says nothing.
func orZero(pointer reflect.Value) reflect.Value {
	if pointer.IsNil() {
		return reflect.Zero(pointer.Type().Elem())
	}
	return pointer.Elem()
}
