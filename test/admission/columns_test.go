// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"testing"

	"parley.dev/parley/test/kit/chattest"
)

func TestResultWithQuestionShowsOutcomeAsState(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	asks := result(s.chat, chattest.Asks("call_1"))
	asks.Spec.Generation.Questions[0].ToolState = "only for the tool"
	mustCreate(t, podA, asks)
	listed, err := kubectl(t.Context(), "", "get", "chatmessage", asks.Name, "-n", ns, "--no-headers")
	if err != nil || !strings.Contains(listed, "Completed") || strings.Contains(listed, "only for the tool") {
		t.Errorf("kubectl lists it as %s, %v", listed, err)
	}
}
