// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

// outcome is how a chat ends whose model gives these replies.
type outcome struct {
	provider v1beta1.ModelProvider
	rules    []modelserver.Rule
	ready    metav1.ConditionStatus
	reason   v1beta1.ConditionReason
	// asked is how often the model, and its fallback, are asked; steps are the replies that are kept.
	asked, fallback int
	steps           int32
	// told is what the last request says.
	told string
}

func mainReplies(times int, finishReason string, steps ...modelserver.Step) modelserver.Rule {
	return modelserver.Rule{Match: modelserver.Match{Model: "main"}, Times: times,
		Reply: modelserver.Reply{Steps: steps, FinishReason: finishReason}}
}

func TestRepliesEndChatsByTheirOutcome(t *testing.T) {
	t.Parallel()
	half := modelserver.Step{ToolCalls: []modelserver.ToolCall{{Name: "current_time",
		Arguments: json.RawMessage(`"{\"timezone\":\"Eur"`)}}}
	hi, think := modelserver.Say("Hi"), modelserver.Think("hm")
	for name, c := range map[string]outcome{
		"complete": {rules: []modelserver.Rule{mainReplies(0, "stop", hi)},
			ready: metav1.ConditionTrue, reason: v1beta1.ReasonAnswered, asked: 1, steps: 1},
		"cut": {rules: []modelserver.Rule{mainReplies(0, "length", hi)},
			ready: metav1.ConditionTrue, reason: v1beta1.ReasonMaxTokensReached, asked: 1, steps: 1},
		"cut call": {rules: []modelserver.Rule{mainReplies(1, "length", half), mainReplies(0, "stop", hi)},
			ready: metav1.ConditionTrue, reason: v1beta1.ReasonAnswered, asked: 2, steps: 2,
			told: "reached its limit of tokens"},
		"filtered": {rules: []modelserver.Rule{mainReplies(0, "content_filter", hi)},
			ready: metav1.ConditionFalse, reason: v1beta1.ConditionReason(v1beta1.ErrorContentFiltered), asked: 1},
		"failed": {rules: []modelserver.Rule{mainReplies(0, "something_new", hi)},
			ready: metav1.ConditionTrue, reason: v1beta1.ReasonAnswered, asked: 1, fallback: 1, steps: 1},
		"empty": {rules: []modelserver.Rule{mainReplies(0, "stop", think)},
			ready: metav1.ConditionTrue, reason: v1beta1.ReasonAnswered, asked: 1, fallback: 1, steps: 1, told: "Go on."},
		"empty everywhere": {rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: []modelserver.Step{think}}}},
			ready: metav1.ConditionFalse, reason: v1beta1.ConditionReason(v1beta1.ErrorEmptyReply), asked: 3, fallback: 2},
		"paused": {provider: v1beta1.ProviderAnthropic,
			rules: []modelserver.Rule{mainReplies(2, "pause_turn", hi), mainReplies(0, "end_turn", hi)},
			ready: metav1.ConditionTrue, reason: v1beta1.ReasonAnswered, asked: 3, steps: 3},
		"paused again and again": {provider: v1beta1.ProviderAnthropic,
			rules: []modelserver.Rule{mainReplies(0, "pause_turn", hi)},
			ready: metav1.ConditionFalse, reason: v1beta1.ConditionReason(v1beta1.ErrorReplyFailed), asked: 10, steps: 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

func (c outcome) check(t *testing.T) {
	fallback := modelserver.Rule{Match: modelserver.Match{Model: "spare"}, Reply: modelserver.Reply{
		Steps: []modelserver.Step{modelserver.Say("Hello")}}}
	models, err := modelserver.New(modelserver.Script{Rules: append(c.rules, fallback)})
	check.OK(t, err)
	server := httptest.NewServer(models)
	t.Cleanup(server.Close)
	ns := bareNamespace(t)
	of := func(model string, change func(*v1beta1.ChatModelConfigSpec)) func(*v1beta1.ChatModelConfigSpec) {
		return func(s *v1beta1.ChatModelConfigSpec) {
			s.Model, s.BaseURL, s.Retry = model, server.URL+"/v1", &v1beta1.RetryPolicy{MaxDelaySeconds: new(int32(1))}
			if change(s); c.provider != "" {
				s.Provider, s.BaseURL = c.provider, server.URL
				s.APIKey = &v1beta1.APIKeySource{SecretKeyRef: v1beta1.SecretKeyReference{Name: "keys", Key: "key"}}
			}
		}
	}
	create(t, modelConfig(ns, "spare", of("spare", func(*v1beta1.ChatModelConfigSpec) {})))
	create(t, modelConfig(ns, "default", of("main", func(s *v1beta1.ChatModelConfigSpec) {
		s.Default, s.Fallbacks = true, []v1beta1.ModelConfigReference{{Name: "spare"}}
	})))
	create(t, newChat(ns, "c", "hello"))
	runPods(t, ns)
	waitForReady(t, ns, "c", c.ready, c.reason)
	asked := map[string]int{}
	requests := models.Requests()
	for _, r := range requests {
		var body struct {
			Model string `json:"model"`
		}
		check.OK(t, json.Unmarshal(r.Body, &body))
		asked[body.Model]++
	}
	st := chatIn(t, ns, "c").Status
	if asked["main"] != c.asked || asked["spare"] != c.fallback || st.Turn.Steps != c.steps {
		t.Errorf("asked %v, %d steps: %s", asked, st.Turn.Steps, printable(st))
	}
	check.Contains(t, string(requests[len(requests)-1].Body), c.told)
}
