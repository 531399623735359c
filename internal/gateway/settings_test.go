// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/test/kit/check"
)

const (
	// numberSchema is what answers of these tests match, and isNumber such an answer.
	numberSchema = `{"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}`
	isNumber     = `{"n":1}`
)

// answersJSON gives the message of a client two replies, of which the second matches. The result is the message.
func (c *conversation) answersJSON() (asked func() *v1beta1.ChatMessage) {
	var done sync.WaitGroup
	var message *v1beta1.ChatMessage
	done.Go(func() {
		message = c.takeUp(1)
		for _, text := range []string{"Sure! ", isNumber} {
			c.attempt(1)
			c.commit()
			c.say(text)
			c.finish(v1beta1.RoleAssistant, text)
			c.commit()
		}
		c.chat.Status.Turn.Result = v1beta1.TurnAnswered
		c.commit()
	})
	return func() *v1beta1.ChatMessage { done.Wait(); return message }
}

// settingsCase is a request with settings in one of the protocols.
type settingsCase struct {
	path, body string
	// stop is whether the protocol has stops.
	stop bool
	// answer is what the answer contains, streamed or not.
	answer string
}

func TestSettingsOfClientsReachTheirMessage(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	anna := in.user("anna")
	quoted, _ := json.Marshal(isNumber) // Texts always have a JSON.
	for name, c := range map[string]settingsCase{
		"completions": {"/chat/completions", `"messages": [{"role": "user", "content": "Count."}], "stop": ["END"],
			"tool_choice": {"type": "function", "function": {"name": "count"}},
			"response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": ` + numberSchema + `}}`,
			true, `"content":` + string(quoted)},
		"responses": {"/responses", `"input": "Count.", "tool_choice": {"type": "function", "name": "count"},
			"text": {"format": {"type": "json_schema", "name": "n", "strict": true, "schema": ` + numberSchema + `}}`,
			false, `"text":` + string(quoted)},
		"messages": {"/messages", `"messages": [{"role": "user", "content": "Count."}], "max_tokens": 9, "stop_sequences": ["END"],
			"tool_choice": {"type": "tool", "name": "count"},
			"output_config": {"format": {"type": "json_schema", "schema": ` + numberSchema + `}}`,
			true, `"text":` + string(quoted)},
	} {
		for _, stream := range []string{"false", "true"} {
			t.Run(name+", stream "+stream, func(t *testing.T) {
				chat := name + "-" + stream
				asked := in.converse(chat).answersJSON()
				c.check(t, anna.does("POST", anna.base()+c.path, `{"stream": `+stream+`, `+c.body+`}`, "X-Parley-Chat", chat), asked())
			})
		}
	}
}

func (c settingsCase) check(t *testing.T, got answered, asked *v1beta1.ChatMessage) {
	t.Helper()
	if got.status != 200 || !strings.Contains(got.body, c.answer) || strings.Contains(got.body, "Sure!") {
		t.Errorf("%d %s", got.status, got.body)
	}
	want := v1beta1.ChatMessageSpec{ChatRef: asked.Spec.ChatRef, Role: v1beta1.RoleUser, Content: "Count.",
		Output:     &v1beta1.OutputFormat{Schema: runtime.RawExtension{Raw: []byte(numberSchema)}},
		ToolChoice: &v1beta1.ToolChoice{Type: v1beta1.ToolChoiceTool, Tool: "count"}}
	if c.stop {
		want.Stop = []string{"END"}
	}
	check.Equal(t, "the message", want, asked.Spec)
}

func TestSettingsThatCannotBeUsedAreRefused(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	anna := in.user("anna")
	const list = `{"type": "json_schema", "schema": {"type": "array"}}`
	for name, c := range map[string]struct{ path, body, field string }{
		"completions, a list": {"/chat/completions", `"response_format": {"type": "json_schema", "json_schema": {"schema":
			{"type": "array"}}}`, "response_format.json_schema.schema"},
		"completions, five stops":     {"/chat/completions", `"stop": ["a", "b", "c", "d", "e"]`, "stop"},
		"completions, several tools":  {"/chat/completions", `"tool_choice": {"type": "allowed_tools"}`, "tool_choice"},
		"responses, a list":           {"/responses", `"text": {"format": ` + list + `}`, "text.format.schema"},
		"messages, a list":            {"/messages", `"output_config": {"format": ` + list + `}`, "output_config.format.schema"},
		"messages, a stop of nothing": {"/messages", `"stop_sequences": [""]`, "stop_sequences"},
	} {
		t.Run(name, func(t *testing.T) {
			got := anna.does("POST", anna.base()+c.path, `{"input": "x", "messages": [{"role": "user", "content": "x"}], `+c.body+`}`)
			var body struct {
				Type  string
				Error struct {
					Type, Message string
					Param         *string
				}
			}
			err := json.Unmarshal([]byte(got.body), &body)
			named := c.path == "/messages" && body.Type == "error" || body.Error.Param != nil && *body.Error.Param == c.field
			if err != nil || got.status != 400 || body.Error.Type != "invalid_request_error" || !named ||
				!strings.Contains(body.Error.Message, c.field) {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

// waitsForClient begins a turn with settings, whose call waits for its client.
func (c *conversation) waitsForClient() {
	c.in.t.Helper()
	began := c.ask("q-"+c.chat.Name, 1)
	began.Spec.Output = &v1beta1.OutputFormat{Schema: runtime.RawExtension{Raw: []byte(numberSchema)}}
	began.Spec.ToolChoice = &v1beta1.ToolChoice{Type: v1beta1.ToolChoiceRequired}
	check.OK(c.in.t, cluster.Client.Update(c.in.t.Context(), began))
	c.chat.Status.Phase = v1beta1.ChatRequiresAction
	c.chat.Status.RequiresAction = &v1beta1.RequiresActionStatus{Message: "reply",
		Deadline:  metav1.NewTime(time.Now().Add(time.Hour)),
		ToolCalls: []v1beta1.PendingToolCall{{ID: "call_1", Name: "count", Kind: v1beta1.RequiresClient}}}
	c.commit()
}

func TestResultsContinueWithTheSettingsOfTheTurn(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	anna := in.user("anna")
	const format = `"text": {"format": {"type": "json_schema", "name": "n", "schema": ` + numberSchema + `}}`
	for name, c := range map[string]struct{ settings, refused string }{
		"none":         {`"metadata": {}`, ""},
		"repeated":     {format + `, "tool_choice": "required"`, ""},
		"auto":         {format + `, "tool_choice": "auto"`, ""},
		"other-format": {`"text": {"format": {"type": "json_object"}}`, "text.format"},
		"no-tools":     {`"tool_choice": "none"`, "tool_choice"},
	} {
		t.Run(name, func(t *testing.T) {
			in.converse(name).waitsForClient()
			got := anna.does("POST", anna.base()+"/responses", `{"background": true, `+c.settings+`, "input": [
				{"type": "function_call_output", "call_id": "call_1_`+name+`", "output": "1"}]}`)
			if c.refused != "" {
				if got.status != 400 || !strings.Contains(got.body, `"param":"`+c.refused+`"`) {
					t.Errorf("%d %s", got.status, got.body)
				}
				return
			}
			var results v1beta1.ChatMessage
			key := client.ObjectKey{Namespace: in.namespace, Name: got.header.Get("X-Parley-Message")}
			if err := cluster.Client.Get(t.Context(), key, &results); err != nil {
				t.Fatalf("%v: %d %s", err, got.status, got.body)
			}
			if results.Spec.Role != v1beta1.RoleTool || results.Annotations[turn.AnnotationOutput] == "" {
				t.Errorf("the results are %+v", results)
			}
		})
	}
}

func TestClientsAreToldThatNoAnswerMatched(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	anna := in.user("anna")
	for path, want := range map[string]string{"/chat/completions": `"code":"output_invalid"`, "/responses": `"code":"output_invalid"`,
		"/messages": `"type":"api_error"`} {
		t.Run(path, func(t *testing.T) {
			c := in.converse("c" + strings.ReplaceAll(path, "/", "-"))
			var done sync.WaitGroup
			defer done.Wait()
			done.Go(func() {
				c.takeUp(1)
				c.attempt(1)
				c.commit()
				c.finish(v1beta1.RoleAssistant, "No.")
				c.chat.Status.Turn.Result = v1beta1.TurnFailed
				c.chat.Status.LastError = &v1beta1.LastError{GenerationError: v1beta1.GenerationError{
					Reason: v1beta1.ErrorOutputInvalid, Message: "n is missing"}}
				c.commit()
			})
			got := anna.does("POST", anna.base()+path, `{"input": "x", "messages": [{"role": "user", "content": "x"}]}`,
				"X-Parley-Chat", c.chat.Name)
			if got.status != 502 || !strings.Contains(got.body, want) || !strings.Contains(got.body, "n is missing") {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}
