// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/test/modelserver"
)

// askPicture begins a turn with an image of 300 KiB, for which a pod reckons with 2400 KiB.
func (c *conversation) askPicture() {
	c.t.Helper()
	data := make([]byte, 300<<10)
	copy(data, "\x89PNG\r\n\x1a\n")
	m := &v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{
		ChatRef: v1alpha1.ChatReference{Name: c.chat.Name}, Role: v1alpha1.RoleUser,
		Parts: []v1alpha1.MessagePart{{Type: v1alpha1.PartFile,
			File: &v1alpha1.MessageFile{Name: "a.png", MediaType: "image/png", Data: base64.StdEncoding.EncodeToString(data)}}},
	}}
	m.Name, m.Namespace = c.chat.Name+"-u", c.ns
	create(c.t, m)
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: m.Name}
		s.History = v1alpha1.HistoryStatus{Version: 1, Head: m.Name, Length: 1}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
	})
}

func TestLargePromptsWaitForEachOtherAndSmallOnesForNobody(t *testing.T) {
	t.Parallel()
	p := startPod(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "small"},
			Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Fine.")}}},
		{Reply: modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultHang}}},
	}}, func(_ *pod, options *runner.Options) { options.PromptMemory = 5 << 20 })
	var large []*conversation
	for i := range 4 {
		c := p.newChat(fmt.Sprintf("large-%d", i), nil)
		c.askPicture()
		large = append(large, c)
	}
	p.eventually("two calls are under way", func() bool { return p.models.InFlight() == 2 })
	small := p.newChat("small", nil)
	small.ask("small-u", "small")
	small.result()
	if n := p.models.InFlight(); n != 2 {
		t.Errorf("%d calls with large prompts are under way", n)
	}
	for _, c := range large { // Also those that wait.
		if err := cluster.Client.Delete(t.Context(), c.chat); err != nil {
			t.Fatal(err)
		}
	}
	p.eventually("no call is under way", func() bool { return p.models.InFlight() == 0 })
	next := p.newChat("next", nil)
	next.askPicture()
	p.eventually("there is room again", func() bool { return p.models.InFlight() == 1 })
}
