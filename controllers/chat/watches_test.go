// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
)

// namespaced is a client that lists the chats and ChatModelConfigs of a namespace and does nothing else.
type namespaced struct {
	client.Client
	chats   []v1alpha1.Chat
	configs []v1alpha1.ChatModelConfig
}

func (n namespaced) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if chats, ok := into.(*v1alpha1.ChatList); ok {
		chats.Items = n.chats
		return nil
	}
	into.(*v1alpha1.ChatModelConfigList).Items = n.configs
	return nil
}

func TestConfigurationWakesChatsWhoseConditionsDependOnIt(t *testing.T) {
	chat := func(name string, change func(*v1alpha1.Chat)) v1alpha1.Chat {
		c := v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		change(&c)
		return c
	}
	says := func(condition string) func(*v1alpha1.Chat) {
		return func(c *v1alpha1.Chat) {
			c.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue}}
		}
	}
	e := &enqueuer{cache: namespaced{
		chats: []v1alpha1.Chat{
			chat("plain", func(*v1alpha1.Chat) {}),
			chat("fell-back", says(v1alpha1.ConditionModelConfigFallback)),
			chat("without-advice", says(v1alpha1.ConditionAdvisorUnavailable)),
			chat("archived",
				func(c *v1alpha1.Chat) { says(v1alpha1.ConditionModelConfigFallback)(c); c.Status.Archived = true }),
			chat("advised", func(c *v1alpha1.Chat) { c.Spec.Advisor = &v1alpha1.ChatAdvisor{Enabled: true} }),
		},
		configs: []v1alpha1.ChatModelConfig{
			modelConfig("default", func(s *v1alpha1.ChatModelConfigSpec) {
				s.Default = true
				s.Advisor = &v1alpha1.AdvisorPolicy{Mode: v1alpha1.AdvisorOptIn,
					ModelConfigRef: &v1alpha1.ModelConfigReference{Name: "strong"}}
			}),
			modelConfig("strong", nil), modelConfig("other", nil),
		},
	}}
	marked := []string{"fell-back", "without-advice"}
	for name, want := range map[string][]string{
		"other": marked, "strong": append(marked[:2:2], "advised"), "default": append(marked[:2:2], "advised"),
	} {
		config := modelConfig(name, nil)
		config.Namespace = "ns"
		var got []string
		for _, request := range e.chatsMarkedBy(t.Context(), &config) {
			got = append(got, request.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s wakes %v", name, got)
		}
	}
}
