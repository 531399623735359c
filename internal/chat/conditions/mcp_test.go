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

func TestUnavailableServersOfNewestReplySetCondition(t *testing.T) {
	var st v1beta1.ChatStatus
	parley.MarkMCPServers(&st, &v1beta1.MCPAccount{Unavailable: []v1beta1.MCPServerUnavailable{
		{Name: "github", Reason: v1beta1.MCPTimedOut, Message: "it did not\x1b[31m answer"},
		{Name: "jira", Reason: v1beta1.MCPAccessDenied, Message: "it answered 401"},
	}}, now)
	said := meta.FindStatusCondition(st.Conditions, v1beta1.ConditionMCPServersUnavailable)
	want := "The newest reply was made without the tools of MCP servers. github (TimedOut): it did not [31m answer; " +
		"see whether it answers, or raise connectTimeoutSeconds. jira (AccessDenied): it answered 401; correct its headers"
	if said == nil || said.Reason != "TimedOut" || said.Message != want {
		t.Fatalf("it says %+v", said)
	}
	for name, account := range map[string]*v1beta1.MCPAccount{
		"nothing to say": nil, "all servers answered": {Pinned: []v1beta1.MCPTool{{Name: "s__a", Hash: "1"}}},
	} {
		later := *st.DeepCopy()
		parley.MarkMCPServers(&later, account, now)
		if said := meta.FindStatusCondition(later.Conditions, v1beta1.ConditionMCPServersUnavailable); said != nil {
			t.Errorf("%s: it says %+v", name, said)
		}
	}
}

func TestEveryServerReasonHasRemedyInCondition(t *testing.T) {
	for _, reason := range []v1beta1.MCPServerReason{v1beta1.MCPConnectionFailed, v1beta1.MCPTimedOut,
		v1beta1.MCPAccessDenied, v1beta1.MCPSecretMissing, v1beta1.MCPHostForbidden, v1beta1.MCPResponseInvalid,
		v1beta1.MCPCABundleInvalid,
		v1beta1.MCPReferenceNotFound, v1beta1.MCPReferenceForbidden, v1beta1.MCPNotReady, v1beta1.MCPAddressInvalid,
		v1beta1.MCPWorkspaceNotReady, v1beta1.MCPCommandFailed} {
		var st v1beta1.ChatStatus
		parley.MarkMCPServers(&st, &v1beta1.MCPAccount{Unavailable: []v1beta1.MCPServerUnavailable{
			{Name: "s", Reason: reason, Message: "words"},
		}}, now)
		if strings.HasSuffix(st.Conditions[0].Message, "words; ") {
			t.Errorf("%s: %s", reason, st.Conditions[0].Message)
		}
	}
}
