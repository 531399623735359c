// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
)

func TestLabelOfAToolIsAKnownOne(t *testing.T) {
	a := &Attempt{Caller: Caller{chat: &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{ChatSettings: v1alpha1.ChatSettings{
		MCPServers: []v1alpha1.MCPServer{{Name: "tracker"}},
		Tools:      &v1alpha1.ChatTools{Client: []v1alpha1.ClientTool{{Name: "tracker__mine"}}},
	}}}}}
	for name, want := range map[string]string{
		"current_time": "current_time", "tracker__list": "mcp", "tracker__mine": "client", "other__list": "client",
		"list": "client", "__": "client",
	} {
		check.Equal(t, name, want, a.toolLabel(name, name == "current_time"))
	}
}
