// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1alpha1"
	parley "parley.dev/parley/internal/chat/conditions"
)

func TestUnavailableProviderToolsOfNewestReplySetCondition(t *testing.T) {
	for reason, todo := range map[v1alpha1.ProviderToolReason]string{
		v1alpha1.ProviderToolNotSupported:  "name a ChatModelConfig of one that has",
		v1alpha1.ProviderToolNotAllowed:    "tools.allow or tools.deny",
		v1alpha1.ProviderToolNeedsApproval: "take it out of tools.approval",
	} {
		var st v1alpha1.ChatStatus
		parley.MarkProviderTools(&st, []v1alpha1.ProviderToolUnavailable{{Tool: v1alpha1.ProviderWebSearch, Reason: reason}},
			now)
		said := meta.FindStatusCondition(st.Conditions, "ProviderToolsUnavailable")
		if said == nil || said.Reason != string(reason) || !strings.Contains(said.Message, "WebSearch: ") ||
			!strings.Contains(said.Message, todo) {
			t.Fatalf("it says %+v", said)
		}
		parley.MarkProviderTools(&st, nil, now)
		if len(st.Conditions) > 0 {
			t.Errorf("after a reply with all tools it says %+v", st.Conditions)
		}
	}
}
