// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
)

func TestChatUsesNamedClassOrFirstDefault(t *testing.T) {
	class := func(name string, isDefault bool) v1beta1.ChatClass {
		return v1beta1.ChatClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.ChatClassSpec{Default: isDefault}}
	}
	goes := class("a", true)
	goes.DeletionTimestamp = new(metav1.Now())
	all := []v1beta1.ChatClass{class("z", true), class("coder", false), goes, class("b", true)}
	for name, c := range map[string]struct {
		classes     []v1beta1.ChatClass
		named, want string
		missing     bool
	}{
		"it names one":              {all, "coder", "coder", false},
		"it names none":             {all, "", "b", false},
		"it names one that is gone": {all, "reviewer", "", true},
		"there is no default":       {all[1:2], "", "", false},
		"there is none":             {nil, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, why := chatclass.Resolve(c.classes, &v1beta1.ChatSpec{ChatClassName: c.named})
			if (got == nil) != (c.want == "") || got != nil && got.Name != c.want || (why != nil) != c.missing {
				t.Errorf("got %+v, %v", got, why)
			}
			if why != nil && (why.Reason != v1beta1.ErrorChatClassNotFound || why.Advice == "") {
				t.Errorf("the error is %+v", why)
			}
		})
	}
}
