// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"parley.dev/parley/internal/cli/converse"
	"parley.dev/parley/test/kit/tmux"
	"parley.dev/parley/test/modelserver"
)

func TestUserConversesWithChatInTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "story"}, Reply: words(2000, 30*time.Millisecond)},
		{Reply: say("Hello", ", who are you?")},
	}})
	w.newChat("c", "Hi.")
	w.ready("c", 2)
	talk := w.plugin("send", "c")
	screen := tmux.Start(t, []string{"KUBECONFIG=" + w.kubeconfig}, talk.Args...)
	screen.Sees("▎> Hi.", "Hello, who are you?", "ctrl-D leaves")
	screen.Types("Tell me a story.")
	screen.Press("Enter")
	screen.Sees("worda wordb wordc")
	screen.Types("And then?")
	screen.Press("Escape")
	screen.Sees("Esc again interrupts the turn")
	screen.Press("Escape")
	screen.Sees("▎[interrupted]", "▎> And then?")
	screen.Press("Enter")
	w.ready("c", 6)
	screen.Sees("▎> And then?\n\nHello, who are you?")
	screen.Press("C-d")
	screen.Ends(0)
	if history := w.history("c"); history[4].Spec.Content != "And then?" {
		t.Errorf("sent was %q", history[4].Spec.Content)
	}
}

func TestUserApprovesPlanWhereItIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works(callOf("propose_plan", map[string]any{"plan": "1. Wait."})))
	w.mayApprove()
	asks := w.plugin("new", "c", "Plan it.", "--mode", "Plan")
	screen := tmux.Start(t, []string{"KUBECONFIG=" + w.kubeconfig}, asks.Args...)
	screen.Sees("| 1. Wait.",
		"(propose_plan) needs approval", "type y1 to approve it")
	shown := time.Now()
	w.eventually("the plan was shown for a while", func() bool { return time.Since(shown) > converse.ReadTime })
	screen.Types("y1")
	screen.Press("Enter")
	screen.Sees("Done.")
	screen.Ends(0)
	if turn := w.ready("c", 4).Status.Turn; !turn.PlanApproved {
		t.Errorf("the turn is %+v", turn)
	}
}
