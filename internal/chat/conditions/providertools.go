// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// providerToolWords say why a provider's own tool is not offered to a model, and what to do about it.
var providerToolWords = map[v1beta1.ProviderToolReason]string{
	v1beta1.ProviderToolNotSupported: "the provider that answers has no such tool; name a ChatModelConfig of one that " +
		"has, or take the tool out of tools.provider",
	v1beta1.ProviderToolNotAllowed: "tools.allow or tools.deny of the chat or its ChatClass does not let it be called",
	v1beta1.ProviderToolNeedsApproval: "its calls need approval, which the provider does not wait for; take it out of " +
		"tools.approval of the chat or its ChatClass, or out of tools.provider",
}

// MarkProviderTools records which of the provider's own tools the newest reply was made without. It says nothing of the
// chat itself, which continues without them.
func MarkProviderTools(st *v1beta1.ChatStatus, left []v1beta1.ProviderToolUnavailable, now time.Time) {
	if len(left) == 0 {
		meta.RemoveStatusCondition(&st.Conditions, v1beta1.ConditionProviderToolsUnavailable)
		return
	}
	said := make([]string, 0, len(left))
	for _, l := range left {
		said = append(said, fmt.Sprintf("%s: %s", l.Tool, providerToolWords[l.Reason]))
	}
	set(&st.Conditions, metav1.Condition{
		Type: v1beta1.ConditionProviderToolsUnavailable, Status: metav1.ConditionTrue, Reason: string(left[0].Reason),
		Message: "The newest reply was made without tools of tools.provider. " + strings.Join(said, ". "),
	}, st.ObservedGeneration, now)
}
