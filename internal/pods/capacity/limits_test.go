// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func quota(name string, chats, subChats *int32) v1beta1.ChatQuota {
	return v1beta1.ChatQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1beta1.ChatQuotaSpec{Generating: v1beta1.GeneratingLimits{Chats: chats, SubChats: subChats}},
	}
}

func TestSmallestLimitOfMultipleQuotasApplies(t *testing.T) {
	n := func(n int32) *int32 { return &n }
	for name, c := range map[string]struct {
		quotas []v1beta1.ChatQuota
		want   Limits
	}{
		"none":                {nil, Limits{}},
		"one":                 {[]v1beta1.ChatQuota{quota("a", n(2), n(3))}, Limits{Limit{2, "a"}, Limit{3, "a"}}},
		"one with one number": {[]v1beta1.ChatQuota{quota("a", n(2), nil)}, Limits{Chats: Limit{2, "a"}}},
		"each is smaller in one": {[]v1beta1.ChatQuota{quota("a", n(2), n(9)), quota("b", n(5), n(3))},
			Limits{Limit{2, "a"}, Limit{3, "b"}}},
		"equal ones": {[]v1beta1.ChatQuota{quota("b", n(2), n(2)), quota("a", n(2), n(2))},
			Limits{Limit{2, "a"}, Limit{2, "a"}}},
		"zero is the smallest": {[]v1beta1.ChatQuota{quota("a", n(2), nil), quota("b", n(0), nil)},
			Limits{Chats: Limit{0, "b"}}},
		"one number from each": {[]v1beta1.ChatQuota{quota("a", n(2), nil), quota("b", nil, n(3))},
			Limits{Limit{2, "a"}, Limit{3, "b"}}},
		"a number that is not zero": {[]v1beta1.ChatQuota{quota("b", n(0), nil), quota("a", n(1), nil)},
			Limits{Chats: Limit{0, "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "limits", c.want, OfNamespace(c.quotas))
		})
	}
}

func TestUnsetClusterQuotaFieldsUseDefaults(t *testing.T) {
	defaults := ClusterLimits{
		All:       Limits{Limit{Max: 2000}, Limit{Max: 4000}},
		Namespace: Limits{Limit{Max: 500}, Limit{Max: 1000}},
	}
	partial := defaults
	partial.All.Chats, partial.Namespace.SubChats = Limit{0, "default"}, Limit{7, "default"}
	meta := metav1.ObjectMeta{Name: "default"}
	for name, c := range map[string]struct {
		quota *v1beta1.ClusterChatQuota
		want  ClusterLimits
	}{
		"there is none":   {nil, defaults},
		"it says nothing": {&v1beta1.ClusterChatQuota{ObjectMeta: meta}, defaults},
		"it says some": {&v1beta1.ClusterChatQuota{ObjectMeta: meta, Spec: v1beta1.ClusterChatQuotaSpec{
			Generating:       &v1beta1.GeneratingLimits{Chats: new(int32(0))},
			NamespaceDefault: &v1beta1.GeneratingLimits{SubChats: new(int32(7))},
		}}, partial},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "limits", c.want, OfCluster(c.quota))
		})
	}
}
