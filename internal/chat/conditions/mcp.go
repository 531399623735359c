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
	"parley.dev/parley/internal/text/printable"
)

// mcpAdvice is what to do about an MCP server that cannot be used.
var mcpAdvice = map[v1beta1.MCPServerReason]string{
	v1beta1.MCPConnectionFailed: "see whether it runs at its url",
	v1beta1.MCPTimedOut:         "see whether it answers, or raise connectTimeoutSeconds",
	v1beta1.MCPAccessDenied:     "correct its headers",
	v1beta1.MCPSecretMissing:    "create it",
	v1beta1.MCPHostForbidden: "name another url, or have the operator's administrator change --mcp-hosts or " +
		"--allow-loopback",
	v1beta1.MCPResponseInvalid:    "see whether url and transport are those of an MCP server",
	v1beta1.MCPCABundleInvalid:    "put certificates in PEM there",
	v1beta1.MCPReferenceNotFound:  "create it, or install the project that brings its kind",
	v1beta1.MCPReferenceForbidden: "have the operator's administrator give the manager the rights of config/mcp",
	v1beta1.MCPNotReady:           "see what its own status says",
	v1beta1.MCPAddressInvalid:     "correct it, or name the server's address in url",
	v1beta1.MCPWorkspaceNotReady:  "see what the chat's Workspace says, or give the chat a workspace in spec.workspace",
	v1beta1.MCPCommandFailed:      "see what the command has written in the workspace, and correct it or the image",
}

// MarkMCPServers records which MCP servers the newest reply was made without. It says nothing of the chat itself, which
// continues without their tools.
func MarkMCPServers(st *v1beta1.ChatStatus, account *v1beta1.MCPAccount, now time.Time) {
	if account == nil || len(account.Unavailable) == 0 {
		meta.RemoveStatusCondition(&st.Conditions, v1beta1.ConditionMCPServersUnavailable)
		return
	}
	said := make([]string, 0, len(account.Unavailable))
	for _, server := range account.Unavailable {
		said = append(said, fmt.Sprintf("%s (%s): %s; %s", server.Name, server.Reason, printable.Line(server.Message),
			mcpAdvice[server.Reason]))
	}
	set(&st.Conditions, metav1.Condition{
		Type: v1beta1.ConditionMCPServersUnavailable, Status: metav1.ConditionTrue,
		Reason:  string(account.Unavailable[0].Reason),
		Message: "The newest reply was made without the tools of MCP servers. " + strings.Join(said, ". "),
	}, st.ObservedGeneration, now)
}
