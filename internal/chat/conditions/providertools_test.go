// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	parley "parley.dev/parley/internal/chat/conditions"
)

func TestUnavailableProviderToolsOfNewestReplySetCondition(t *testing.T) {
	for reason, todo := range map[v1beta1.ProviderToolReason]string{
		v1beta1.ProviderToolNotSupported:  "name a ChatModelConfig of one that has",
		v1beta1.ProviderToolNotAllowed:    "tools.allow or tools.deny",
		v1beta1.ProviderToolNeedsApproval: "take it out of tools.approval",
	} {
		var st v1beta1.ChatStatus
		parley.MarkProviderTools(&st, []v1beta1.ProviderToolUnavailable{{Tool: v1beta1.ProviderWebSearch, Reason: reason}},
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
