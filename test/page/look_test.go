// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"

	"parley.dev/parley/internal/testing/browser"
)

func TestLook(t *testing.T) {
	s := newStage(t)
	s.list(summary("triage", "Running", "Generating", fields{"title": "Why node-7 is not ready", "lastReply": "It is the CNI."}),
		summary("deploy", "RequiresAction", "RequiresAction", nil))
	s.chat("triage", user(0, "Why does node-7 not get ready?"), assistant(1, reasoning("Let me look."), text("I will **look**.\n\n- one\n- two\n\n```go\nfunc main() {}\n```"),
		call("c1", "execute", fields{"command": "kubectl get nodes"})),
		tool(2, result("c1", "execute", fields{"success": true, "output": "NAME     STATUS\nnode-7   NotReady\n", "exit_code": 0, "wall_duration_ms": 1300})),
		assistant(3, text("It is the [CNI](https://example.com).\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")),
		status("Waiting", "Answered", 4, nil))
	p := browser.Open(t, browser.Start(t), s.url)
	p.Look("light", 1280, 860)
	p.Click("#chats a", "node-7")
	p.Sees("article", "CNI")
	p.Picture("/tmp/page-1.png")
	p.Look("dark", 1280, 860)
	p.Picture("/tmp/page-2.png")
	p.Look("light", 320, 640)
	p.Picture("/tmp/page-3.png")
	for _, b := range p.Barriers("../../bin/axe/node_modules/axe-core/axe.min.js") {
		t.Errorf("%+v", b)
	}
}
