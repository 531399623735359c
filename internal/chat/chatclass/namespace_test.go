// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
)

func TestTheNamespaceSpeaksThroughItsDefaultClassAlone(t *testing.T) {
	class := func(name string, isDefault bool, preamble string) v1beta1.ChatClass {
		return v1beta1.ChatClass{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1beta1.ChatClassSpec{Default: isDefault, NamespacePreamble: preamble}}
	}
	for name, c := range map[string]struct {
		classes []v1beta1.ChatClass
		want    string
	}{
		"the default":                           {[]v1beta1.ChatClass{class("a", false, ""), class("b", true, "x")}, "b"},
		"a default that says nothing":           {[]v1beta1.ChatClass{class("b", true, "")}, ""},
		"another class":                         {[]v1beta1.ChatClass{class("a", false, "Be lawful.")}, ""},
		"of several defaults the first by name": {[]v1beta1.ChatClass{class("b", true, "x"), class("a", true, "y")}, "a"},
		"also if that says nothing":             {[]v1beta1.ChatClass{class("b", true, "x"), class("a", true, "")}, ""},
		"no class":                              {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if of := chatclass.Namespace(c.classes); of != nil {
				got = of.Name
			}
			if got != c.want {
				t.Errorf("got that of %q, want that of %q", got, c.want)
			}
		})
	}
}
