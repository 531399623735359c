// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelconfig

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

func config(name string, isDefault bool) v1beta1.ChatModelConfig {
	return v1beta1.ChatModelConfig{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.ChatModelConfigSpec{Default: isDefault}}
}

func TestResolve(t *testing.T) {
	all := []v1beta1.ChatModelConfig{config("c", true), config("b", false), config("a", true)}
	many := []v1beta1.ChatModelConfig{config("m0", false)}
	many[0].Spec.Disabled = true
	for i := range 6 {
		many = append(many, config(fmt.Sprintf("m%d", i), false))
	}
	for name, c := range map[string]struct {
		configs []v1beta1.ChatModelConfig
		ref     string
		want    string
		says    string
	}{
		"the named one":                {all, "b", "b", ""},
		"the first default by name":    {all, "", "a", ""},
		"a named one that is missing":  {all, "x", "", "ChatModelConfig x, which spec.modelConfigRef names, does not exist"},
		"no default":                   {all[1:2], "", "", "spec.modelConfigRef: b. Or set"},
		"no default among many":        {many, "", "", "spec.modelConfigRef: m0, m1, m2, m3, m4 or others. Or set"},
		"an empty namespace":           {nil, "", "", "Create one with default: true"},
		"a named one, without default": {all[1:2], "b", "b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var ref *v1beta1.ModelConfigReference
			if c.ref != "" {
				ref = &v1beta1.ModelConfigReference{Name: c.ref}
			}
			got, missing := Resolve(c.configs, &v1beta1.ChatSpec{ModelConfigRef: ref}, ByChat)
			switch {
			case c.want != "" && (missing != nil || got.Name != c.want):
				t.Errorf("got %v, %v", got, missing)
			case c.want == "" && (missing == nil || missing.Reason != v1beta1.ErrorModelConfigNotFound ||
				!strings.Contains(missing.Text(), c.says)):
				t.Errorf("got %v, %+v", got, missing)
			}
		})
	}
}

func TestMissingNamesEveryReferenceThatLeadsNowhere(t *testing.T) {
	ref := func(name string) *v1beta1.ModelConfigReference { return &v1beta1.ModelConfigReference{Name: name} }
	c := config("c", false)
	c.Spec.Fallbacks = []v1beta1.ModelConfigReference{*ref("c"), *ref("gone")}
	c.Spec.Compaction = &v1beta1.CompactionPolicy{ModelConfigRef: ref("summarizer")}
	c.Spec.Titles = &v1beta1.CaptionSettings{ModelConfigRef: ref("cheap")}
	c.Spec.TurnSummaries = &v1beta1.CaptionSettings{ModelConfigRef: ref("cheap")}
	if got, want := Missing([]v1beta1.ChatModelConfig{c}, &c),
		[]string{"gone", "summarizer", "cheap"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	c.Spec.TurnSummaries = nil
	c.Spec.Titles.Enabled = new(false)
	if got, want := Missing([]v1beta1.ChatModelConfig{c}, &c), []string{"gone", "summarizer"}; !slices.Equal(got, want) {
		t.Errorf("with titles off and no summaries %v", got)
	}
}

func TestAReferenceToADisabledConfigurationLeadsNowhere(t *testing.T) {
	off, c := config("off", false), config("c", false)
	off.Spec.Disabled = true
	ref := &v1beta1.ModelConfigReference{Name: "off"}
	for name, refer := range map[string]func(*v1beta1.ChatModelConfigSpec){
		"a fallback": func(s *v1beta1.ChatModelConfigSpec) {
			s.Fallbacks = []v1beta1.ModelConfigReference{*ref}
		},
		"what writes summaries": func(s *v1beta1.ChatModelConfigSpec) {
			s.Compaction = &v1beta1.CompactionPolicy{ModelConfigRef: ref}
		},
		"what writes titles": func(s *v1beta1.ChatModelConfigSpec) {
			s.Titles = &v1beta1.CaptionSettings{ModelConfigRef: ref}
		},
		"what sums turns up": func(s *v1beta1.ChatModelConfigSpec) {
			s.TurnSummaries = &v1beta1.CaptionSettings{ModelConfigRef: ref}
		},
	} {
		naming := *c.DeepCopy()
		refer(&naming.Spec)
		if got := Missing([]v1beta1.ChatModelConfig{off, naming}, &naming); !slices.Equal(got, []string{"off"}) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestADisabledConfigurationAnswersNobody(t *testing.T) {
	off, missing := config("a", true), "gone"
	off.Spec.Disabled = true
	all := []v1beta1.ChatModelConfig{off, config("b", true), config("c", false)}
	for name, c := range map[string]struct {
		configs []v1beta1.ChatModelConfig
		ref     string
		policy  v1beta1.ModelConfigUnavailablePolicy
		want    string
		reason  v1beta1.ErrorReason
	}{
		"it is no default":       {all, "", "", "b", ""},
		"it is the only default": {all[:1], "", "", "", v1beta1.ErrorModelConfigNotFound},
		"it is named":            {all, "a", "", "", v1beta1.ErrorModelConfigDisabled},
		"it is named, and the chat waits": {all, "a", v1beta1.ModelConfigUnavailableFail, "",
			v1beta1.ErrorModelConfigDisabled},
		"it is named, and the default answers": {all, "a", v1beta1.ModelConfigUnavailableUseDefault, "b", ""},
		"it is named, and there is no default": {all[:1], "a", v1beta1.ModelConfigUnavailableUseDefault, "",
			v1beta1.ErrorModelConfigDisabled},
		"one that is gone is named, and none answers": {all, missing, v1beta1.ModelConfigUnavailableFail, "",
			v1beta1.ErrorModelConfigNotFound},
		"one that is gone is named, and the default":    {all, missing, v1beta1.ModelConfigUnavailableUseDefault, "b", ""},
		"another is named, and the default has to wait": {all, "c", v1beta1.ModelConfigUnavailableUseDefault, "c", ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &v1beta1.ChatSpec{WhenModelConfigUnavailable: c.policy}
			if c.ref != "" {
				spec.ModelConfigRef = &v1beta1.ModelConfigReference{Name: c.ref}
			}
			got, why := Resolve(c.configs, spec, ByChat)
			switch {
			case c.want != "" && (why != nil || got.Name != c.want):
				t.Errorf("got %v, %v", got, why)
			case c.want == "" && (why == nil || why.Reason != c.reason):
				t.Errorf("got %v, %+v", got, why)
			}
		})
	}
	if Enabled(all, "a") != nil || Enabled(all, "c") == nil || Enabled(all, missing) != nil {
		t.Error("the wrong ones are enabled")
	}
}
