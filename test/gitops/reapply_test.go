// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import "testing"

const modelConfig = "ChatModelConfig/default"

var messages = []string{"ChatMessage/triage-cni", "ChatMessage/triage-events", "ChatMessage/triage-summary"}

func TestReapplyingManifestsChangesNothing(t *testing.T) {
	for _, tools := range []map[string]func(t *testing.T, ns string) tool{controllers, commands} {
		with(t, tools, applyAgainAndAgain)
	}
}

func applyAgainAndAgain(t *testing.T, ns string, what tool) {
	git := checkOut(t, ns, "chats.yaml")
	before := git.without(modelConfig)
	what.apply(t, before)
	wait(t, ns, "ModelConfigNotFound", "Chat/triage", "Chat/broken")
	open(t, ns, append(messages, "ChatMessage/triage-prompt")...)
	unchanged(t, what, ns, before)
	ownFieldsOnly(t, ns, before, what.managers())

	what.apply(t, git)
	running(t, ns, "Chat/triage", "Chat/broken")
	wait(t, ns, "Answering", "ChatMessage/triage-prompt")
	wait(t, ns, "Queued", messages...)
	unchanged(t, what, ns, git)
	ownFieldsOnly(t, ns, git, what.managers())

	playPods(t, ns)
	wait(t, ns, "AuthenticationFailed", "Chat/broken", "ChatMessage/broken-prompt")
	wait(t, ns, "Answered", append(messages, "ChatMessage/triage-prompt", "Chat/triage")...)
	unchanged(t, what, ns, git)
	ownFieldsOnly(t, ns, git, what.managers())
}

func TestDriftDetectionNeverSeesWhatTheOperatorWrites(t *testing.T) {
	with(t, controllers, func(t *testing.T, ns string, what tool) {
		git := checkOut(t, ns, "busy.yaml")
		what.apply(t, git)
		playPods(t, ns)
		comparisons := 0
		eventually(t, "the last message is answered", func() bool {
			comparisons++
			if drifted := what.drift(t, git); len(drifted) > 0 {
				t.Fatalf("drift: %v", drifted)
			}
			_, reason := ready(liveIn(t, ns, "ChatMessage/busy-again"))
			return reason == "Answered"
		})
		if comparisons < 2 {
			t.Errorf("compared %d times while the chat ran, which shows nothing", comparisons)
		}
		ownFieldsOnly(t, ns, git, what.managers())
	})
}
