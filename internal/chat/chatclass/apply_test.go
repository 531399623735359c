// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
)

func settings(change func(*v1beta1.ChatSettings)) v1beta1.ChatSettings {
	var s v1beta1.ChatSettings
	change(&s)
	return s
}

// everything is settings of which every field says something, of which the text tells whose they are.
func everything(of string, n int32) v1beta1.ChatSettings {
	ref := &v1beta1.ModelConfigReference{Name: of}
	pattern := []v1beta1.ToolPattern{v1beta1.ToolPattern(of)}
	return v1beta1.ChatSettings{
		SystemPrompt: of,
		InstructionsFrom: []v1beta1.InstructionsSource{
			{ConfigMapKeyRef: v1beta1.ConfigMapKeyReference{Name: of}}},
		SkillsFrom:                 []v1beta1.SkillSource{{ConfigMapRef: v1beta1.ConfigMapReference{Name: of}}},
		ModelConfigRef:             ref,
		WhenModelConfigUnavailable: v1beta1.ModelConfigUnavailablePolicy(of),
		ReasoningEffort:            v1beta1.ReasoningEffort(of),
		Tools: &v1beta1.ChatTools{
			Allow: pattern, Deny: pattern, Approval: pattern, Client: []v1beta1.ClientTool{{Name: of}},
			Provider: []v1beta1.ProviderTool{v1beta1.ProviderTool(of)}, StopAfter: []string{of},
			WebSearch: &v1beta1.WebSearchSettings{AllowedDomains: []string{of}},
		},
		MCPServers: []v1beta1.MCPServer{{Name: of}},
		Kubernetes: &v1beta1.KubernetesAccess{ServiceAccountName: of, Changes: v1beta1.ClusterChanges(of)},
		Advisor: &v1beta1.ChatAdvisor{
			Enabled: new(true), ModelConfigRef: ref, ReasoningEffort: v1beta1.ReasoningEffort(of), MaxUses: new(n),
			MaxOutputTokens: new(int64(n)),
		},
		Workspace: &v1beta1.WorkspaceSource{WarmPoolRef: &v1beta1.WarmPoolReference{Name: of}},
		SubAgents: &v1beta1.SubAgentSettings{Enabled: new(true), ModelConfigs: []v1beta1.ModelConfigReference{*ref}},
		Limits: &v1beta1.ChatLimits{
			MaxSteps: new(n), MaxQueue: new(n), MaxSubChats: new(n), MaxDepth: new(n), ActionDeadlineSeconds: new(n),
			Budget: &v1beta1.Budget{Currency: v1beta1.Currency(of), Amount: "1"},
		},
		Compaction: &v1beta1.CompactionPolicy{ThresholdPercent: new(n), ModelConfigRef: ref},
		Retention:  &v1beta1.ChatRetention{DeleteAfterSeconds: new(n)},
		Debug:      &v1beta1.DebugSettings{ExpireAfterSeconds: new(n)},
	}
}

// unset names the fields that say nothing, also within what fields point to.
func unset(t *testing.T, v reflect.Value, path string) (names []string) {
	t.Helper()
	for i := range v.NumField() {
		field, name := v.Field(i), path+v.Type().Field(i).Name
		if field.IsZero() {
			names = append(names, name)
			continue
		}
		switch name {
		case "Tools", "Advisor", "SubAgents", "Compaction", "Limits":
			names = append(names, unset(t, field.Elem(), name+".")...)
		}
	}
	return names
}

func TestChatFieldsOverrideClassDefaults(t *testing.T) {
	own, class := everything("own", 1), everything("class", 2)
	if names := unset(t, reflect.ValueOf(own), ""); len(names) > 0 {
		t.Fatalf("the test says nothing of %v", names)
	}
	var nothing v1beta1.ChatSettings
	for name, c := range map[string]struct{ own, class, want v1beta1.ChatSettings }{
		"both say all":        {own, class, own},
		"the chat says all":   {own, nothing, own},
		"the class says all":  {nothing, class, class},
		"nobody says a thing": {nothing, nothing, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			got, ignored := chatclass.Apply(&c.own, &v1beta1.ChatClassSpec{Defaults: c.class})
			if diff := cmp.Diff(c.want, got); diff != "" || ignored != nil {
				t.Errorf("ignored are %v; -want +got\n%s", ignored, diff)
			}
		})
	}
	if got, _ := chatclass.Apply(&own, nil); cmp.Diff(own, got) != "" {
		t.Errorf("a chat without class has %+v", got)
	}
}

func TestNestedSettingsAreMergedFieldByField(t *testing.T) {
	own := v1beta1.ChatSettings{
		Tools:      &v1beta1.ChatTools{Client: []v1beta1.ClientTool{{Name: "ask"}}},
		Advisor:    &v1beta1.ChatAdvisor{Enabled: new(false)},
		Compaction: &v1beta1.CompactionPolicy{ThresholdPercent: new(int32(90))},
		Limits:     &v1beta1.ChatLimits{MaxSteps: new(int32(3))},
	}
	got, _ := chatclass.Apply(&own, &v1beta1.ChatClassSpec{Defaults: v1beta1.ChatSettings{
		Tools:   &v1beta1.ChatTools{Approval: []v1beta1.ToolPattern{"execute"}},
		Advisor: &v1beta1.ChatAdvisor{Enabled: new(true), MaxUses: new(int32(1))},
		Compaction: &v1beta1.CompactionPolicy{
			ThresholdPercent: new(int32(50)), ModelConfigRef: &v1beta1.ModelConfigReference{Name: "cheap"},
		},
		Limits: &v1beta1.ChatLimits{MaxSteps: new(int32(9)), MaxQueue: new(int32(2))},
	}})
	want := v1beta1.ChatSettings{
		Tools: &v1beta1.ChatTools{
			Client: []v1beta1.ClientTool{{Name: "ask"}}, Approval: []v1beta1.ToolPattern{"execute"},
		},
		Advisor: &v1beta1.ChatAdvisor{Enabled: new(false), MaxUses: new(int32(1))},
		Compaction: &v1beta1.CompactionPolicy{
			ThresholdPercent: new(int32(90)), ModelConfigRef: &v1beta1.ModelConfigReference{Name: "cheap"},
		},
		Limits: &v1beta1.ChatLimits{MaxSteps: new(int32(3)), MaxQueue: new(int32(2))},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestChatFieldRestrictedByClassIsIgnored(t *testing.T) {
	own, class := everything("own", 1), everything("class", 2)
	all := []string{
		"systemPrompt", "instructionsFrom", "skillsFrom", "modelConfigRef", "whenModelConfigUnavailable",
		"reasoningEffort", "tools", "mcpServers", "kubernetes", "advisor", "workspace", "subAgents", "compaction", "limits",
		"retention", "debug",
	}
	if of := reflect.TypeFor[v1beta1.ChatSettings](); of.NumField() != len(all) {
		t.Fatalf("%d fields of %d can be kept", len(all), of.NumField())
	}
	kept := &v1beta1.ChatRestrictions{}
	for _, field := range all {
		kept.Fields = append(kept.Fields, v1beta1.ChatField(field))
	}
	got, ignored := chatclass.Apply(&own, &v1beta1.ChatClassSpec{Defaults: class, Restrictions: kept})
	if diff := cmp.Diff(class, got); diff != "" || !slices.Equal(ignored, all) {
		t.Errorf("ignored are %v; -want +got\n%s", ignored, diff)
	}
	if own.SystemPrompt != "own" {
		t.Error("the chat itself has changed")
	}
	for _, field := range all {
		kept.Fields = []v1beta1.ChatField{v1beta1.ChatField(field)}
		got, ignored := chatclass.Apply(&own, &v1beta1.ChatClassSpec{Restrictions: kept})
		if !slices.Equal(ignored, []string{field}) || cmp.Equal(got, own) {
			t.Errorf("of %s ignored are %v", field, ignored)
		}
		_, ignored = chatclass.Apply(&v1beta1.ChatSettings{}, &v1beta1.ChatClassSpec{Restrictions: kept})
		if ignored != nil {
			t.Errorf("of a chat that says nothing %v is ignored", ignored)
		}
	}
}

func TestThePreambleStandsBeforeEverySystemPrompt(t *testing.T) {
	for name, c := range map[string]struct{ preamble, own, class, want string }{
		"with the chat's prompt":   {"Be safe.", "Be brief.", "Be kind.", "Be safe.\n\nBe brief."},
		"with the class's prompt":  {"Be safe.", "", "Be kind.", "Be safe.\n\nBe kind."},
		"alone":                    {"Be safe.", "", "", "Be safe."},
		"a blank one":              {" \n", "Be brief.", "", "Be brief."},
		"none, and a chat's alone": {"", "Be brief.", "", "Be brief."},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := chatclass.Apply(&v1beta1.ChatSettings{SystemPrompt: c.own}, &v1beta1.ChatClassSpec{
				Preamble: c.preamble, Defaults: v1beta1.ChatSettings{SystemPrompt: c.class}})
			if got.SystemPrompt != c.want {
				t.Errorf("got %q", got.SystemPrompt)
			}
		})
	}
}

func TestSettingsStayWithinTheRestrictionsOfTheClass(t *testing.T) {
	budget := func(currency v1beta1.Currency, amount v1beta1.Amount) *v1beta1.ChatLimits {
		return &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: currency, Amount: amount}}
	}
	steps := func(n int32) *v1beta1.ChatLimits { return &v1beta1.ChatLimits{MaxSteps: &n} }
	noQueue := &v1beta1.ChatLimits{MaxQueue: new(int32(0))}
	both := &v1beta1.ChatLimits{MaxSteps: new(int32(5)), Budget: budget("USD", "7").Budget}
	for name, c := range map[string]struct {
		own, want *v1beta1.ChatLimits
		most      *v1beta1.ChatLimits
	}{
		"fewer steps":                     {steps(3), steps(3), steps(5)},
		"too many steps":                  {steps(9), steps(5), steps(5)},
		"nothing said, and few may be":    {nil, steps(5), steps(5)},
		"nothing said, and many may be":   {nil, &v1beta1.ChatLimits{}, steps(5000)},
		"no queue":                        {nil, noQueue, noQueue},
		"a smaller budget":                {budget("USD", "0.9"), budget("USD", "0.9"), budget("USD", "1")},
		"a greater budget":                {budget("USD", "10"), budget("USD", "1"), budget("USD", "1")},
		"a budget of another currency":    {budget("EUR", "0.1"), budget("USD", "1"), budget("USD", "1")},
		"no budget":                       {nil, budget("USD", "1"), budget("USD", "1")},
		"a budget, and other limits kept": {budget("USD", "7"), both, steps(5)},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := chatclass.Apply(&v1beta1.ChatSettings{Limits: c.own},
				&v1beta1.ChatClassSpec{Restrictions: &v1beta1.ChatRestrictions{Limits: c.most}})
			if diff := cmp.Diff(c.want, got.Limits); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	strict := &v1beta1.ChatClassSpec{Restrictions: &v1beta1.ChatRestrictions{
		Tools:   &v1beta1.ToolPolicy{Approval: []v1beta1.ToolPattern{"execute"}},
		Advisor: &v1beta1.AdvisorBounds{MaxUses: new(int32(1)), MaxOutputTokens: new(int64(500))},
	}}
	want := settings(func(s *v1beta1.ChatSettings) {
		s.Tools = &v1beta1.ChatTools{Approval: []v1beta1.ToolPattern{"execute"}}
	})
	got, _ := chatclass.Apply(&v1beta1.ChatSettings{}, strict)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a chat that says nothing: -want +got\n%s", diff)
	}
	own := settings(func(s *v1beta1.ChatSettings) {
		s.Tools = &v1beta1.ChatTools{StopAfter: []string{"a"}}
		s.Advisor = &v1beta1.ChatAdvisor{Enabled: new(true), MaxUses: new(int32(5))}
	})
	want.Tools.StopAfter = []string{"a"}
	want.Advisor = &v1beta1.ChatAdvisor{Enabled: new(true), MaxUses: new(int32(1)), MaxOutputTokens: new(int64(500))}
	got, _ = chatclass.Apply(&own, strict)
	if diff := cmp.Diff(want, got); diff != "" || len(own.Tools.Approval) > 0 || *own.Advisor.MaxUses != 5 {
		t.Errorf("a chat that wants more: -want +got\n%s", diff)
	}
}

func TestCompactionModelIsRestrictedByClass(t *testing.T) {
	ref := func(name string) *v1beta1.ModelConfigReference { return &v1beta1.ModelConfigReference{Name: name} }
	class := &v1beta1.ChatClassSpec{
		Defaults: v1beta1.ChatSettings{Compaction: &v1beta1.CompactionPolicy{ModelConfigRef: ref("cheap")}},
		Restrictions: &v1beta1.ChatRestrictions{
			ModelConfigs: []v1beta1.ModelConfigReference{{Name: "small"}},
		},
	}
	for name, c := range map[string]struct {
		own     *v1beta1.ModelConfigReference
		want    string
		ignored []string
	}{
		"the class's own, whatever the list says": {nil, "cheap", nil},
		"one of the list":                         {ref("small"), "small", nil},
		"another one":                             {ref("dear"), "cheap", []string{"compaction.modelConfigRef"}},
	} {
		t.Run(name, func(t *testing.T) {
			own := v1beta1.ChatSettings{
				Compaction: &v1beta1.CompactionPolicy{ThresholdPercent: new(int32(9)), ModelConfigRef: c.own},
			}
			got, ignored := chatclass.Apply(&own, class)
			if got.Compaction.ModelConfigRef.Name != c.want || *got.Compaction.ThresholdPercent != 9 ||
				!slices.Equal(ignored, c.ignored) {
				t.Errorf("got %+v, ignored are %v", got.Compaction, ignored)
			}
		})
	}
}

func TestRetentionIsCappedByClass(t *testing.T) {
	keep := func(seconds int32) *v1beta1.ChatRetention {
		return &v1beta1.ChatRetention{DeleteAfterSeconds: &seconds}
	}
	both := func(seconds, failed int32) *v1beta1.ChatRetention {
		return &v1beta1.ChatRetention{DeleteAfterSeconds: &seconds, DeleteFailedAfterSeconds: &failed}
	}
	failed := func(seconds int32) *v1beta1.ChatRetention {
		return &v1beta1.ChatRetention{DeleteFailedAfterSeconds: &seconds}
	}
	for name, c := range map[string]struct{ own, class, most, want *v1beta1.ChatRetention }{
		"it says nothing, nor does its class":   {nil, nil, nil, nil},
		"what the class says":                   {nil, keep(7), nil, keep(7)},
		"what the chat says":                    {keep(9), keep(7), nil, keep(9)},
		"less than the longest":                 {keep(5), nil, keep(6), keep(5)},
		"more than the longest":                 {keep(9), nil, keep(6), keep(6)},
		"for good, which is more":               {nil, nil, keep(6), keep(6)},
		"said without a time":                   {&v1beta1.ChatRetention{}, nil, keep(6), keep(6)},
		"the class's, more than its longest":    {nil, keep(7), keep(6), keep(6)},
		"a restriction that does not bound any": {keep(9), nil, &v1beta1.ChatRetention{}, keep(9)},
		"shorter after a failure":               {failed(5), nil, keep(6), both(6, 5)},
		"longer after a failure":                {failed(9), nil, keep(6), keep(6)},
		"bounded after a failure alone":         {keep(9), nil, failed(6), both(9, 6)},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := chatclass.Apply(&v1beta1.ChatSettings{Retention: c.own}, &v1beta1.ChatClassSpec{
				Defaults:     v1beta1.ChatSettings{Retention: c.class},
				Restrictions: &v1beta1.ChatRestrictions{Retention: c.most},
			})
			if diff := cmp.Diff(c.want, got.Retention); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestClassAloneArchivesWhatItDeletes(t *testing.T) {
	week, archives := int32(604800), &v1beta1.ChatRetention{Archive: new(true)}
	bounds := &v1beta1.ChatRestrictions{Retention: &v1beta1.ChatRetention{DeleteAfterSeconds: &week}}
	demands := &v1beta1.ChatRestrictions{Retention: &v1beta1.ChatRetention{DeleteAfterSeconds: &week, Archive: new(true)}}
	keep, ignores := &v1beta1.ChatKeep{Chats: new(int32(5))}, []string{"retention.archive"}
	for name, c := range map[string]struct {
		own     *v1beta1.ChatRetention
		class   v1beta1.ChatClassSpec
		want    bool
		ignored []string
	}{
		"a class that deletes nothing":     {archives, v1beta1.ChatClassSpec{}, true, nil},
		"a class with a longest retention": {archives, v1beta1.ChatClassSpec{Restrictions: bounds}, false, ignores},
		"a class that keeps a number":      {archives, v1beta1.ChatClassSpec{Keep: keep}, false, ignores},
		"a class that demands archives":    {nil, v1beta1.ChatClassSpec{Restrictions: demands}, true, nil},
		"a class that archives by its default": {&v1beta1.ChatRetention{}, v1beta1.ChatClassSpec{Keep: keep,
			Defaults: v1beta1.ChatSettings{Retention: archives}}, true, nil},
	} {
		got, ignored := chatclass.Apply(&v1beta1.ChatSettings{Retention: c.own}, &c.class)
		if got.Retention.Archives() != c.want || !slices.Equal(ignored, c.ignored) {
			t.Errorf("%s: retention %+v, ignored %v", name, got.Retention, ignored)
		}
	}
}

func TestAdvisorModelIsRestrictedByClass(t *testing.T) {
	ref := func(name string) *v1beta1.ModelConfigReference { return &v1beta1.ModelConfigReference{Name: name} }
	class := &v1beta1.ChatClassSpec{
		Defaults:     v1beta1.ChatSettings{Advisor: &v1beta1.ChatAdvisor{ModelConfigRef: ref("strong")}},
		Restrictions: &v1beta1.ChatRestrictions{ModelConfigs: []v1beta1.ModelConfigReference{{Name: "small"}}},
	}
	for name, c := range map[string]struct {
		own     *v1beta1.ModelConfigReference
		want    string
		ignored []string
	}{
		"the class's own, whatever the list says": {nil, "strong", nil},
		"one of the list":                         {ref("small"), "small", nil},
		"another one":                             {ref("dear"), "strong", []string{"advisor.modelConfigRef"}},
	} {
		t.Run(name, func(t *testing.T) {
			own := v1beta1.ChatSettings{Advisor: &v1beta1.ChatAdvisor{Enabled: new(true), ModelConfigRef: c.own}}
			got, ignored := chatclass.Apply(&own, class)
			if got.Advisor.ModelConfigRef.Name != c.want || !got.Advisor.On() || !slices.Equal(ignored, c.ignored) {
				t.Errorf("got %+v, ignored are %v", got.Advisor, ignored)
			}
		})
	}
}

func TestTheClusterBoundsTheAdvisorOfEveryChat(t *testing.T) {
	advisor := func(enabled bool, uses *int32) *v1beta1.ChatAdvisor {
		return &v1beta1.ChatAdvisor{Enabled: &enabled, MaxUses: uses}
	}
	for name, c := range map[string]struct {
		own  *v1beta1.ChatAdvisor
		uses *int32
		want *v1beta1.ChatAdvisor
	}{
		"no bound":                   {advisor(true, new(int32(9))), nil, advisor(true, new(int32(9)))},
		"no advisor":                 {nil, new(int32(1)), nil},
		"more uses than may be":      {advisor(true, new(int32(9))), new(int32(2)), advisor(true, new(int32(2)))},
		"fewer uses than may be":     {advisor(true, new(int32(1))), new(int32(2)), advisor(true, new(int32(1)))},
		"more by default":            {advisor(true, nil), new(int32(2)), advisor(true, new(int32(2)))},
		"switched off for all chats": {advisor(true, nil), new(int32(0)), advisor(false, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, chatclass.WithinCluster(c.own, c.uses)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if c.own != nil && !*c.own.Enabled {
				t.Error("the chat's own settings have changed")
			}
		})
	}
}
