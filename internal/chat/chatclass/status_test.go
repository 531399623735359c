// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
)

func TestStatusListsFieldsDecidedByClass(t *testing.T) {
	said := settings(func(s *v1beta1.ChatSettings) {
		s.SystemPrompt = "Be brief."
		s.Limits = &v1beta1.ChatLimits{MaxSteps: new(int32(9))}
		s.Debug = &v1beta1.DebugSettings{Enabled: true}
	})
	for name, c := range map[string]struct {
		class v1beta1.ChatClassSpec
		want  []v1beta1.ChatField
	}{
		"a class that says nothing": {v1beta1.ChatClassSpec{}, nil},
		"a default where the chat says nothing": {v1beta1.ChatClassSpec{Defaults: settings(func(s *v1beta1.ChatSettings) {
			s.ModelConfigRef = &v1beta1.ModelConfigReference{Name: "small"}
		})}, []v1beta1.ChatField{v1beta1.FieldModelConfigRef}},
		"a default where the chat says something": {
			v1beta1.ChatClassSpec{Defaults: v1beta1.ChatSettings{SystemPrompt: "Be kind."}}, nil},
		"one of several limits": {v1beta1.ChatClassSpec{Defaults: settings(func(s *v1beta1.ChatSettings) {
			s.Limits = &v1beta1.ChatLimits{MaxQueue: new(int32(2))}
		})}, []v1beta1.ChatField{v1beta1.FieldLimits}},
		"a preamble": {v1beta1.ChatClassSpec{Preamble: "Be safe."}, []v1beta1.ChatField{v1beta1.FieldSystemPrompt}},
		"a field that is kept": {v1beta1.ChatClassSpec{Restrictions: &v1beta1.ChatRestrictions{
			Fields: []v1beta1.ChatField{v1beta1.FieldDebug, v1beta1.FieldTools},
		}}, []v1beta1.ChatField{v1beta1.FieldDebug}},
		"a limit that is smaller": {v1beta1.ChatClassSpec{Restrictions: &v1beta1.ChatRestrictions{
			Limits: &v1beta1.ChatLimits{MaxSteps: new(int32(5))},
		}}, []v1beta1.ChatField{v1beta1.FieldLimits}},
		"bounds within which the chat stays": {v1beta1.ChatClassSpec{Restrictions: &v1beta1.ChatRestrictions{
			Limits: &v1beta1.ChatLimits{MaxSteps: new(int32(10))}, Tools: &v1beta1.ToolPolicy{},
		}}, nil},
		"bounds of tools": {v1beta1.ChatClassSpec{Restrictions: &v1beta1.ChatRestrictions{
			Tools: &v1beta1.ToolPolicy{Deny: []v1beta1.ToolPattern{"execute"}},
		}}, []v1beta1.ChatField{v1beta1.FieldTools}},
	} {
		t.Run(name, func(t *testing.T) {
			chat := &v1beta1.Chat{Spec: v1beta1.ChatSpec{ChatSettings: said}}
			inForce, _ := chatclass.Effective(chat, &v1beta1.ChatClass{Spec: c.class})
			if got := chatclass.Status(chat, inForce).FromClass; !slices.Equal(got, c.want) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTheStatusHasTheLimitsWithTheirDefaults(t *testing.T) {
	chat := &v1beta1.Chat{}
	chat.Spec.Limits = &v1beta1.ChatLimits{MaxSteps: new(int32(9))}
	class := &v1beta1.ChatClass{}
	class.Spec.Restrictions = &v1beta1.ChatRestrictions{Limits: &v1beta1.ChatLimits{
		MaxQueue: new(int32(3)), ActionDeadlineSeconds: new(int32(60)),
		Budget: &v1beta1.Budget{Currency: "USD", Amount: "5"},
	}}
	inForce, _ := chatclass.Effective(chat, class)
	want := v1beta1.ChatLimits{
		MaxSteps: new(int32(9)), MaxQueue: new(int32(3)), MaxSubChats: new(int32(20)), MaxDepth: new(int32(1)),
		ActionDeadlineSeconds: new(int32(60)), Budget: &v1beta1.Budget{Currency: "USD", Amount: "5"},
	}
	if diff := cmp.Diff(want, chatclass.Status(chat, inForce).Limits); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// maxStatus is the most bytes that the settings may add to a status, which is written at each step.
const maxStatus = 512

func TestTheStatusOfTheSettingsIsSmall(t *testing.T) {
	chat, class := &v1beta1.Chat{}, &v1beta1.ChatClass{}
	class.Spec.Defaults = everything("a-class-with-a-rather-long-name", 1<<30)
	inForce, _ := chatclass.Effective(chat, class)
	got := chatclass.Status(chat, inForce)
	got.Limits.Budget = &v1beta1.Budget{Currency: "USD", Amount: "1000000000.000001"}
	raw, err := json.Marshal(got)
	if err != nil || len(raw) > maxStatus || len(got.FromClass) != 16 {
		t.Errorf("%d bytes, %v: %s", len(raw), err, raw)
	}
}
