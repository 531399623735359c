// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// commanding is a chat with an MCP server that runs in its workspace.
func commanding(ns string) *v1beta1.Chat {
	chat := working(ns, "c")
	chat.Spec.MCPServers = []v1beta1.MCPServer{{Name: "memory", Command: []string{"server-memory"}}}
	return chat
}

func TestFirstStepStartsAndAwaitsWorkspaceOfServers(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	create(t, commanding(ns))
	waitsForServers(t, ns, "the workspace in which they run: ")
	runs(t, workspaceIn(t, ns, "c"))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("I remember."))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-1-1", 2)
}

func TestBrokenWorkspaceOfServersDoesNotBlockTurn(t *testing.T) {
	ns := parallel(t)
	chat := commanding(ns)
	chat.Spec.Workspace.PodTemplateRef.Name = "none"
	create(t, chat)
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("I could not look."))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-1-1", 2)
}
