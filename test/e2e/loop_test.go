// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/modelserver"
)

func TestPendingRetrySurvivesManagerRestartAndRunsOnce(t *testing.T) {
	localnode.Needed(t)
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Times: 1, Reply: modelserver.Reply{Fault: &modelserver.Fault{
			Kind: modelserver.FaultStatus, Status: 429, RetryAfter: &modelserver.RetryAfter{Seconds: new(4)},
		}}},
		{Reply: say("At last.")},
	}})
	w.newChat("c", "Are you there?")
	var retry *v1alpha1.RetryStatus
	w.eventually("the retry is announced", func() bool { retry = w.chat("c").Status.Retry; return retry != nil })
	if retry.Attempt != 1 || retry.Reason != v1alpha1.ErrorRateLimited {
		t.Errorf("the retry is %+v", retry)
	}
	killManager(t)
	w.ready("c", 2)
	reply := w.history("c")[1]
	if g := reply.Spec.Generation; g.Attempt != 2 || g.StartedAt.Before(&retry.At) || text(&reply) != "At last." {
		t.Errorf("the reply is %+v", reply.Spec)
	}
	check.Equal(t, "calls of the model", 2, len(w.requests()))
	w.nothingLeft("c")
}

func TestCompactedChatGoesOnAndIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "Write a summary"},
			Reply: say("They greeted each other.")},
		{Reply: say("Hello to you.")},
	}})
	chat := &v1alpha1.Chat{ObjectMeta: w.meta("c"),
		Spec: v1alpha1.ChatSpec{Prompt: "Hello there", Debug: &v1alpha1.DebugSettings{Enabled: true}}}
	w.create(chat)
	w.ready("c", 2)
	w.kubectlChat("compact", "c")
	w.ready("c", 3)
	w.say("c", "more", "And now?")
	w.ready("c", 5)
	if roles := w.history("c"); roles[2].Spec.Role != v1alpha1.RoleSystem ||
		text(&roles[2]) != "They greeted each other." {
		t.Errorf("the summary is %+v", roles[2].Spec)
	}
	requests := w.requests()
	last := string(requests[len(requests)-1].Body)
	if strings.Contains(last, "Hello there") || !strings.Contains(last, "They greeted each other.") ||
		!strings.Contains(last, "And now?") {
		t.Errorf("the model was asked %s", last)
	}
	var steps v1alpha1.ChatDebugStepList
	w.eventually("each call is recorded", func() bool {
		return c.List(t.Context(), &steps, client.InNamespace(w.ns)) == nil && len(steps.Items) == 3
	})
	for i := range steps.Items {
		if raw, err := json.Marshal(&steps.Items[i]); err != nil || strings.Contains(string(raw), "sk-e2e-secret") {
			t.Errorf("recording %s holds the key (%v)", steps.Items[i].Name, err)
		}
	}
}

func TestTitleAndSummaryAreGeneratedAlongsideReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{ToolOffered: "set_title"},
			Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Call("set_title", `{"title":"Full disks"}`)}}},
		{Match: modelserver.Match{ToolOffered: "set_summary"},
			Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Call("set_summary",
				`{"summary":"Found a full disk"}`)}}},
		{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("The disk is full.")},
			DelayBefore: modelserver.Duration(300 * time.Millisecond)}},
	}})
	captioned := w.modelConfig("captioned")
	captioned.Spec.Titles, captioned.Spec.TurnSummaries = &v1alpha1.CaptionSettings{}, &v1alpha1.CaptionSettings{}
	w.create(captioned)
	w.create(&v1alpha1.Chat{ObjectMeta: w.meta("c"), Spec: v1alpha1.ChatSpec{
		Prompt: "Why does nothing start?", ModelConfigRef: &v1alpha1.ModelConfigReference{Name: "captioned"},
	}})
	w.ready("c", 2)
	w.eventually("the chat has a title, and its turn a summary", func() bool {
		st := w.chat("c").Status
		return st.Title == "Full disks" && st.TitleSource == v1alpha1.TitleFromModel && st.Turn.Summary == "Found a full disk"
	})
	check.Equal(t, "calls of the model", 3, len(w.requests()))
	w.nothingLeft("c")
}
