// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn_test

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func restricting(change func(*v1beta1.ChatRestrictions)) func(*v1beta1.ChatClassSpec) {
	return func(s *v1beta1.ChatClassSpec) {
		s.Restrictions = &v1beta1.ChatRestrictions{}
		change(s.Restrictions)
	}
}

func isDefault(s *v1beta1.ChatClassSpec) { s.Default = true }

func TestAddedSettingsOfNewChatsFitClasses(t *testing.T) {
	reserves := restricting(func(r *v1beta1.ChatRestrictions) {
		r.Fields = []v1beta1.ChatField{v1beta1.FieldRetention, v1beta1.FieldLimits}
	})
	allows := func(seconds int32) func(*v1beta1.ChatClassSpec) {
		return restricting(func(r *v1beta1.ChatRestrictions) {
			r.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: &seconds}
			r.Limits = &v1beta1.ChatLimits{ActionDeadlineSeconds: &seconds}
		})
	}
	archives := func(s *v1beta1.ChatClassSpec) {
		s.Defaults.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(2592000)), Archive: new(true)}
	}
	type settings struct {
		retention *v1beta1.ChatRetention
		limits    *v1beta1.ChatLimits
	}
	with := func(retention, deadline int32) settings {
		return settings{&v1beta1.ChatRetention{DeleteAfterSeconds: &retention},
			&v1beta1.ChatLimits{ActionDeadlineSeconds: &deadline}}
	}
	archived := with(3600, 3600)
	archived.retention.Archive = new(true)
	class := chattest.Class
	ofCoder := turn.Request{Temporary: true, Model: "class/coder"}
	ofDefault, thread := turn.Request{Temporary: true}, turn.Request{Thread: "t", Model: "class/coder"}
	for name, c := range map[string]struct {
		request turn.Request
		classes []*v1beta1.ChatClass
		want    settings
	}{
		"no class":                 {ofDefault, nil, with(3600, 3600)},
		"a thread":                 {turn.Request{Thread: "t"}, nil, with(604800, 3600)},
		"a class that reserves":    {ofCoder, []*v1beta1.ChatClass{class("coder", reserves)}, settings{}},
		"a class that allows less": {thread, []*v1beta1.ChatClass{class("coder", allows(60))}, with(60, 60)},
		"a class that allows more": {ofCoder, []*v1beta1.ChatClass{class("coder", allows(86400))}, with(3600, 3600)},
		"a class that archives":    {ofCoder, []*v1beta1.ChatClass{class("coder", archives)}, archived},
		"another class":            {ofCoder, []*v1beta1.ChatClass{class("other", reserves, isDefault)}, with(3600, 3600)},
		"the default":              {ofDefault, []*v1beta1.ChatClass{class("coder", allows(60), isDefault)}, with(60, 60)},
		"several defaults": {ofDefault,
			[]*v1beta1.ChatClass{class("a", isDefault), class("b", allows(60), isDefault)}, with(60, 60)},
		"the second default archives": {ofDefault,
			[]*v1beta1.ChatClass{class("a", isDefault), class("b", archives, isDefault)}, with(3600, 3600)},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.Tools = []v1beta1.ClientTool{{Name: "count"}}
			chat := c.request.NewChat("c")
			classes := make([]v1beta1.ChatClass, 0, len(c.classes))
			for _, one := range c.classes {
				classes = append(classes, *one)
			}
			turn.AdaptToClasses(chat, classes)
			check.Equal(t, "the retention", c.want.retention, chat.Spec.Retention)
			check.Equal(t, "the limits", c.want.limits, chat.Spec.Limits)
		})
	}
}
