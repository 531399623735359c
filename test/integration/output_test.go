// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

func formatOf(schema string) *v1beta1.OutputFormat {
	return &v1beta1.OutputFormat{Schema: runtime.RawExtension{Raw: []byte(schema)}}
}

// outputCase is how a chat ends that asks for a number n, and whose model gives these replies.
type outputCase struct {
	structured v1beta1.StructuredOutput
	schema     string
	replies    []modelserver.Step
	ready      metav1.ConditionStatus
	reason     v1beta1.ConditionReason
	// output is status.output, and problem a part of what OutputReady says is wrong.
	output, problem string
	// steps are the replies that are kept; told is what the last request says.
	steps int32
	told  string
}

func TestAnswersMatchTheirSchema(t *testing.T) {
	t.Parallel()
	const number = `{"type":"object","required":["n"],"additionalProperties":false,"properties":{"n":{"type":"integer"}}}`
	say, call := modelserver.Say, modelserver.Call
	invalid := v1beta1.ConditionReason(v1beta1.ErrorOutputInvalid)
	for name, c := range map[string]outputCase{
		"at once": {schema: number, replies: []modelserver.Step{say(`{"n": 1}`)}, ready: metav1.ConditionTrue,
			reason: v1beta1.ReasonAnswered, output: `{"n":1}`, steps: 1, told: `"json_schema"`},
		"after tools": {schema: number, replies: []modelserver.Step{call("current_time", `{}`), say(`{"n": 2}`)},
			ready: metav1.ConditionTrue, reason: v1beta1.ReasonAnswered, output: `{"n":2}`, steps: 2},
		"after two tries": {schema: number, replies: []modelserver.Step{say("Sure!"), say(`{"n":"x"}`), say(`{"n":3}`)},
			ready: metav1.ConditionTrue, reason: v1beta1.ReasonAnswered, output: `{"n":3}`, steps: 3,
			told: "/n: got string, want integer"},
		"never": {schema: number, replies: []modelserver.Step{say("a"), say("b"), say(`{}`)}, ready: metav1.ConditionFalse,
			reason: invalid, problem: "missing property 'n'", steps: 3},
		"through a tool": {structured: v1beta1.StructuredOutputTool, schema: number,
			replies: []modelserver.Step{call("current_time", `{}`), call("submit_answer", `{"n":4}`)},
			ready:   metav1.ConditionTrue, reason: v1beta1.ReasonAnswered, output: `{"n":4}`, steps: 2,
			told: `"tool_choice":{"function":{"name":"submit_answer"}`},
		"a schema that is none": {schema: `{"type":"object","properties":{"n":"integer"}}`, ready: metav1.ConditionFalse,
			reason: v1beta1.ConditionReason(v1beta1.ErrorOutputSchemaInvalid)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

func (c outputCase) check(t *testing.T) {
	var rules []modelserver.Rule
	for _, step := range c.replies {
		rules = append(rules, modelserver.Rule{Times: 1, Reply: modelserver.Reply{Steps: []modelserver.Step{step}}})
	}
	models, err := modelserver.New(modelserver.Script{Rules: rules})
	check.OK(t, err)
	server := httptest.NewServer(models)
	t.Cleanup(server.Close)
	ns := bareNamespace(t)
	create(t, modelConfig(ns, "default", func(s *v1beta1.ChatModelConfigSpec) {
		s.BaseURL, s.Default, s.StructuredOutput = server.URL+"/v1", true, c.structured
	}))
	chat := newChat(ns, "c", "hello")
	chat.Spec.Output = formatOf(c.schema)
	create(t, chat)
	runPods(t, ns)
	waitForReady(t, ns, "c", c.ready, c.reason)
	st := chatIn(t, ns, "c").Status
	got := ""
	if st.Output != nil {
		got = string(st.Output.Raw)
	}
	if e := st.LastError; c.problem != "" && (e == nil || !strings.Contains(e.Message, c.problem)) {
		t.Errorf("the error is %+v", e)
	}
	check.Equal(t, "output", []any{c.output, c.steps}, []any{got, st.Turn.Steps})
	ready := meta.FindStatusCondition(st.Conditions, v1beta1.ConditionOutputReady)
	switch {
	case c.steps == 0:
		if ready != nil || len(models.Requests()) != 0 {
			t.Errorf("the model is asked %d times: %+v", len(models.Requests()), ready)
		}
	case ready == nil, (ready.Status == metav1.ConditionTrue) != (c.output != ""),
		!strings.Contains(ready.Message, c.problem):
		t.Errorf("OutputReady is %+v", ready)
	}
	if requests := models.Requests(); c.told != "" && !strings.Contains(string(requests[len(requests)-1].Body), c.told) {
		t.Errorf("the model is told %s", requests[len(requests)-1].Body)
	}
}

func TestMessageAsksForItsOwnOutput(t *testing.T) {
	t.Parallel()
	models, err := modelserver.New(modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "json"}, Reply: modelserver.Reply{
			Steps: []modelserver.Step{modelserver.Say(`{"ok":true}`)}}},
		{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Hello")}}},
	}})
	check.OK(t, err)
	server := httptest.NewServer(models)
	t.Cleanup(server.Close)
	ns := bareNamespace(t)
	create(t, modelConfig(ns, "default", func(s *v1beta1.ChatModelConfigSpec) {
		s.BaseURL, s.Default = server.URL+"/v1", true
	}))
	create(t, newChat(ns, "c", "hello"))
	runPods(t, ns)
	waitForReady(t, ns, "c", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	for _, ask := range []struct {
		text   string
		output *v1beta1.OutputFormat
	}{{"json", formatOf(`{"type":"object","required":["ok"]}`)}, {"and now", nil}} {
		m := say(ns, "c", strings.ReplaceAll(ask.text, " ", "-"))
		m.Spec.Content, m.Spec.Output = ask.text, ask.output
		create(t, m)
		waitForMessage(t, ns, m.Name, metav1.ConditionTrue, v1beta1.ReasonAnswered)
		st := chatIn(t, ns, "c").Status
		ready := meta.IsStatusConditionTrue(st.Conditions, v1beta1.ConditionOutputReady)
		if wanted := ask.output != nil; ready != wanted || (st.Output != nil) != wanted {
			t.Errorf("%s: %s", ask.text, printable(st))
		}
	}
}
