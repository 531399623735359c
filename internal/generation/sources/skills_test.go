// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/text/skill"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/modelserver"
)

// newReader reads from an API server with these ConfigMaps.
func newReader(t *testing.T, all map[string]*apiclient.ConfigMap) *Reader {
	t.Helper()
	api := modeltest.New(t, modelserver.Script{})
	api.ConfigMaps = all
	return New(Options{Client: api.API, Now: time.Now})
}

func skillIn(name string, items ...v1alpha1.SkillItem) v1alpha1.SkillSource {
	return v1alpha1.SkillSource{ConfigMapRef: v1alpha1.ConfigMapReference{Name: name}, Items: items}
}

func optional(s v1alpha1.SkillSource) v1alpha1.SkillSource {
	s.Optional = true
	return s
}

func item(key, path string) v1alpha1.SkillItem { return v1alpha1.SkillItem{Key: key, Path: path} }

func TestAConfigMapIsASkill(t *testing.T) {
	r := newReader(t, map[string]*apiclient.ConfigMap{
		"forms": {Data: map[string]string{"SKILL.md": "---\nname: pdf\ndescription: Fills in forms.\n---\n", "fill.py": "x",
			"mail.md": "---\nname: mail\n---\n", ".hidden": "x", "..x": "x"}, BinaryData: map[string][]byte{"logo.png": {0}}},
		"bare":  {Data: map[string]string{"SKILL.md": "Do it."}},
		"empty": {Data: map[string]string{"a": "x"}},
	})
	for name, c := range map[string]struct {
		from []v1alpha1.SkillSource
		want []string
		err  string
	}{
		"each key is a file of its name": {[]v1alpha1.SkillSource{skillIn("forms")},
			[]string{"pdf: Fills in forms. [SKILL.md fill.py logo.png mail.md]"}, ""},
		"it has the name of its ConfigMap if it says none": {[]v1alpha1.SkillSource{skillIn("bare")},
			[]string{"bare:  [SKILL.md]"}, ""},
		"items put keys in folders": {[]v1alpha1.SkillSource{skillIn("forms", item("fill.py", "scripts/fill.py"))},
			[]string{"pdf: Fills in forms. [SKILL.md scripts/fill.py]"}, ""},
		"items name another SKILL.md": {[]v1alpha1.SkillSource{skillIn("forms", item("mail.md", "SKILL.md")),
			skillIn("forms")},
			[]string{"mail:  [SKILL.md]", "pdf: Fills in forms. [SKILL.md fill.py logo.png mail.md]"}, ""},
		"items that lead elsewhere are no files": {[]v1alpha1.SkillSource{skillIn("bare", item("SKILL.md", "../x"),
			item("SKILL.md", "/x"), item("SKILL.md", "./x"), item("SKILL.md", "a/.x"))}, []string{"bare:  [SKILL.md]"}, ""},
		"two of the same name": {[]v1alpha1.SkillSource{skillIn("bare"), skillIn("bare")},
			[]string{"bare:  [SKILL.md]", "bare-2:  [SKILL.md]"}, ""},
		"a ConfigMap that is not there": {[]v1alpha1.SkillSource{skillIn("none")}, nil, "ConfigMap none: it does not exist"},
		"a ConfigMap without SKILL.md": {[]v1alpha1.SkillSource{skillIn("empty")}, nil,
			`ConfigMap empty: it has no key "SKILL.md"`},
		"an item that is not there": {[]v1alpha1.SkillSource{skillIn("bare", item("x", "y"))}, nil,
			`ConfigMap bare: it has no key "x"`},
		"optional ones that are not there": {[]v1alpha1.SkillSource{optional(skillIn("none")), optional(skillIn("empty")),
			optional(skillIn("bare", item("x", "y")))}, []string{"bare:  [SKILL.md]"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := r.Skills(t.Context(), "ns", c.from)
			check.Equal(t, "the error", cmp.Or(c.err, "<nil>"), fmt.Sprint(err))
			var got []string
			for _, s := range all {
				files, _, err := s.Files(t.Context())
				check.Equal(t, "error, source, dir", []any{nil, skill.FromConfigMap, ""}, []any{err, s.Source, s.Dir})
				got = append(got, fmt.Sprintf("%s: %s %v", s.Name, s.Description, files))
			}
			check.Equal(t, "the skills", c.want, got)
		})
	}
}

func TestFileOfASkillIsReadOnRequest(t *testing.T) {
	config := &apiclient.ConfigMap{Data: map[string]string{"SKILL.md": "Do it.", "a": "first"},
		BinaryData: map[string][]byte{"large": []byte(strings.Repeat("x", skill.MaxFileBytes+1))}}
	chat := &v1alpha1.Chat{}
	chat.Spec.SkillsFrom = []v1alpha1.SkillSource{skillIn("gone"), skillIn("s")}
	all, err := newReader(t, map[string]*apiclient.ConfigMap{"s": config}).SkillsOf(t.Context(), chat)
	check.Equal(t, "error, skills of one that is there and one that is not", []any{nil, 1}, []any{err, len(all)})
	config.Data["a"] = "second"
	got, err := all[0].File(t.Context(), "a")
	check.Equal(t, "error, the changed file", []any{nil, "second"}, []any{err, string(got)})
	for path, want := range map[string]error{"b": skill.ErrNoFile, "large": skill.ErrTooLarge} {
		_, err := all[0].File(t.Context(), path)
		check.Equal(t, path, true, errors.Is(err, want))
	}
}
