// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
)

func TestEachSettingSaysWhereItComesFrom(t *testing.T) {
	chat := &v1beta1.Chat{}
	chat.Spec.Mode = v1beta1.ModePlan
	chat.Spec.SystemPrompt = "Be brief."
	chat.Spec.Limits = &v1beta1.ChatLimits{MaxSteps: new(int32(9000)), MaxQueue: new(int32(2))}
	chat.Spec.Debug = &v1beta1.DebugSettings{Enabled: true}
	chat.Spec.Tools = &v1beta1.ChatTools{StopAfter: []string{"done"}}
	class := &v1beta1.ChatClass{Spec: v1beta1.ChatClassSpec{
		Preamble: "Be safe.",
		Defaults: v1beta1.ChatSettings{
			SystemPrompt:   "Be kind.",
			ModelConfigRef: &v1beta1.ModelConfigReference{Name: "small"},
			Limits:         &v1beta1.ChatLimits{MaxDepth: new(int32(2))},
			Retention:      &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(60))},
		},
		Restrictions: &v1beta1.ChatRestrictions{
			Fields: []v1beta1.ChatField{v1beta1.FieldDebug}, Limits: &v1beta1.ChatLimits{MaxSteps: new(int32(100))},
			Tools: &v1beta1.ToolPolicy{Deny: []v1beta1.ToolPattern{"execute"}},
		},
	}}
	namespace := &v1beta1.ChatClass{Spec: v1beta1.ChatClassSpec{NamespacePreamble: "Be lawful."}}
	want := []chatclass.Setting{
		{Path: "mode", Value: v1beta1.ModePlan, From: chatclass.FromChat},
		{Path: "namespacePreamble", Value: "Be lawful.", From: chatclass.FromNamespaceDefault},
		{Path: "preamble", Value: "Be safe.", From: chatclass.FromClass},
		{Path: "systemPrompt", Value: "Be brief.", From: chatclass.FromChat},
		{Path: "modelConfigRef", Value: v1beta1.ModelConfigReference{Name: "small"}, From: chatclass.FromClass},
		{Path: "tools.deny", Value: []v1beta1.ToolPattern{"execute"}, From: chatclass.FromRestrictions},
		{Path: "tools.stopAfter", Value: []string{"done"}, From: chatclass.FromChat},
		{Path: "limits.maxSteps", Value: int32(100), From: chatclass.FromRestrictions},
		{Path: "limits.maxQueue", Value: int32(2), From: chatclass.FromChat},
		{Path: "limits.maxDepth", Value: int32(2), From: chatclass.FromClass},
		{Path: "retention", Value: v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(60))}, From: chatclass.FromClass},
	}
	got, ignored := chatclass.Explain(chat, class, namespace)
	if diff := cmp.Diff(want, got); diff != "" || !slices.Equal(ignored, []string{"debug"}) {
		t.Errorf("ignored are %v; -want +got\n%s", ignored, diff)
	}
}

func TestAChatWithoutClassHasWhatItSays(t *testing.T) {
	chat := &v1beta1.Chat{Spec: v1beta1.ChatSpec{ChatSettings: everything("own", 1)}}
	got, ignored := chatclass.Explain(chat, nil, nil)
	if len(ignored) > 0 {
		t.Errorf("ignored are %v", ignored)
	}
	for _, s := range got {
		if s.From != chatclass.FromChat {
			t.Errorf("%s comes from %s", s.Path, s.From)
		}
	}
	if none, _ := chatclass.Explain(&v1beta1.Chat{}, nil, nil); none != nil {
		t.Errorf("a chat that says nothing has %v", none)
	}
}

// TestWhatIsExplainedIsWhatIsInForce holds that both are made of the same, whatever chat and class say.
func TestWhatIsExplainedIsWhatIsInForce(t *testing.T) {
	var nothing v1beta1.ChatSettings
	for i, chat := range []v1beta1.ChatSettings{nothing, everything("own", 1)} {
		for j, defaults := range []v1beta1.ChatSettings{nothing, everything("class", 2)} {
			t.Run(fmt.Sprint(i, j), func(t *testing.T) {
				class := &v1beta1.ChatClass{Spec: v1beta1.ChatClassSpec{Defaults: defaults}}
				inForce, _ := chatclass.Apply(&chat, &class.Spec)
				explained, _ := chatclass.Explain(&v1beta1.Chat{Spec: v1beta1.ChatSpec{ChatSettings: chat}}, class, nil)
				if want := leaves(reflect.ValueOf(inForce)); len(explained) != want {
					t.Errorf("%d settings are explained, and %d are in force", len(explained), want)
				}
			})
		}
	}
}

// leaves counts the fields that say something, and where each counts for itself those within.
func leaves(v reflect.Value) (n int) {
	for i := range v.NumField() {
		field, of := v.Field(i), v.Type().Field(i)
		switch of.Name {
		case "Tools", "Advisor", "SubAgents", "Compaction", "Limits":
			if !field.IsZero() {
				n += leaves(field.Elem())
			}
			continue
		case "ToolPolicy":
			n += leaves(field)
			continue
		}
		if !field.IsZero() {
			n++
		}
	}
	return n
}
