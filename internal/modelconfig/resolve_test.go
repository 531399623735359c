// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelconfig

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

func config(name string, isDefault bool) v1alpha1.ChatModelConfig {
	return v1alpha1.ChatModelConfig{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ChatModelConfigSpec{Default: isDefault}}
}

func TestResolve(t *testing.T) {
	all := []v1alpha1.ChatModelConfig{config("c", true), config("b", false), config("a", true)}
	for name, c := range map[string]struct {
		configs []v1alpha1.ChatModelConfig
		ref     string
		want    string
		says    string
	}{
		"the named one":                {all, "b", "b", ""},
		"the first default by name":    {all, "", "a", ""},
		"a named one that is missing":  {all, "x", "", "ChatModelConfig x, which spec.modelConfigRef names, does not exist"},
		"no default":                   {all[1:2], "", "", "says default: true"},
		"an empty namespace":           {nil, "", "", "Create one"},
		"a named one, without default": {all[1:2], "b", "b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var ref *v1alpha1.ModelConfigReference
			if c.ref != "" {
				ref = &v1alpha1.ModelConfigReference{Name: c.ref}
			}
			got, missing := Resolve(c.configs, ref)
			switch {
			case c.want != "" && (missing != nil || got.Name != c.want):
				t.Errorf("got %v, %v", got, missing)
			case c.want == "" && (missing == nil || missing.Reason != v1alpha1.ErrorModelConfigNotFound || !strings.Contains(missing.Text(), c.says)):
				t.Errorf("got %v, %+v", got, missing)
			}
		})
	}
}

func TestMissingNamesEveryReferenceThatLeadsNowhere(t *testing.T) {
	ref := func(name string) *v1alpha1.ModelConfigReference { return &v1alpha1.ModelConfigReference{Name: name} }
	c := config("c", false)
	c.Spec.Fallbacks = []v1alpha1.ModelConfigReference{*ref("c"), *ref("gone")}
	c.Spec.Compaction = &v1alpha1.CompactionPolicy{ModelConfigRef: ref("summarizer")}
	c.Spec.Titles = &v1alpha1.CaptionSettings{ModelConfigRef: ref("cheap")}
	if got, want := Missing([]v1alpha1.ChatModelConfig{c}, &c), []string{"gone", "summarizer", "cheap"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	c.Spec.Titles.Enabled = new(false)
	if got, want := Missing([]v1alpha1.ChatModelConfig{c}, &c), []string{"gone", "summarizer"}; !slices.Equal(got, want) {
		t.Errorf("with titles off %v", got)
	}
}
