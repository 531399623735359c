// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/schema"
	"parley.dev/parley/internal/tools"
)

func TestWrongArgumentsAreToldBeforeTheWorkspaceIsAsked(t *testing.T) {
	b := newBench(t)
	for call, want := range map[string]string{
		`execute {}`:                                                   "command is missing",
		`execute {"command":""}`:                                       "command must not be empty",
		`execute {"command":" \n"}`:                                    "command is empty or has a NUL",
		`execute {"command":"&"}`:                                      "command is empty or has a NUL",
		`execute {"command":"a\u0000b"}`:                               "command is empty or has a NUL",
		`execute {"command":"x","timeout":0}`:                          "timeout must be a whole number from 1 to 14400, not 0",
		`execute {"command":"x","timeout":14401}`:                      "timeout must be a whole number from 1 to 14400, not 14401",
		`execute {"command":"x","timeout":"10s"}`:                      `timeout must be a whole number from 1 to 14400, not the text "10s"`,
		`execute {"command":"x","cmd":"y","env":{}}`:                   `there are no arguments "cmd", "env". The arguments are: command (required), run_in_background, timeout, workdir.`,
		`execute {"command":"x","run_in_background":"yes"}`:            "run_in_background must be true or false",
		`process_output {"process_id":"p1","wait_timeout":-1}`:         "wait_timeout must be a whole number from 0 to 14400",
		`process_output {}`:                                            "process_id is missing",
		`process_list {"all":true}`:                                    `there are no arguments "all"`,
		`process_signal {"process_id":"p1","signal":"hangup"}`:         `signal must be one of terminate, kill, interrupt, not the text "hangup"`,
		`process_signal {"process_id":"p1"}`:                           "signal is missing",
		`read_file {"path":"a","offset":0}`:                            "offset must be a whole number from 1 to 1000000000, not 0",
		`read_file {"path":"a","limit":10001}`:                         "limit must be a whole number from 1 to 10000, not 10001",
		`read_file {"file":"a"}`:                                       `path is missing; there are no arguments "file"`,
		`write_file {"path":"a"}`:                                      "content is missing",
		`write_file {"path":"a","content":{"a":1}}`:                    "content must be a text, not an object",
		`edit_files {"edits":[]}`:                                      "edits must have at least 1 entries",
		`edit_files {"edits":[{"path":"a","search":"x"}]}`:             `edits[0].new_text is missing; edits[0].old_text is missing; there are no arguments "edits[0].search"`,
		`search_files {"pattern":"x","context":11}`:                    "context must be a whole number from 0 to 10, not 11",
		`search_files {"pattern":"x","limit":1001}`:                    "limit must be a whole number from 1 to 1000, not 1001",
		`search_files {"pattern":"` + strings.Repeat("x", 1025) + `"}`: "pattern must have at most 1024 characters, not 1025",
	} {
		name, input, _ := strings.Cut(call, " ")
		if _, err := b.call(name, input); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "the call was not made: ") {
			t.Errorf("%.80s:\ngot  %v\nwant %s", call, err, want)
		}
	}
	if got := b.agent.Requests(); len(got) != 0 {
		t.Errorf("asked were %q", got)
	}
}

func TestEveryProviderTakesTheSchemasAsTheyAre(t *testing.T) {
	for _, tool := range Tools(Options{}) {
		own := tool.InputSchema()
		if own["additionalProperties"] != false || tool.Description() == "" {
			t.Errorf("%s: the schema or the description says too little", tool.Name())
		}
		var plain schema.Object
		raw, err := json.Marshal(own)
		if err == nil {
			err = json.Unmarshal(raw, &plain)
		}
		if err != nil {
			t.Fatal(err)
		}
		for provider, fit := range map[string]func(schema.Object) (schema.Object, []string){
			"Anthropic": schema.ForAnthropic, "OpenAI": schema.ForOpenAI, "Gemini": schema.ForGemini,
		} {
			if got, left := fit(plain); len(left) != 0 || !cmp.Equal(got, plain) {
				t.Errorf("%s: for %s, %q is left out: %s", tool.Name(), provider, left, cmp.Diff(plain, got))
			}
		}
	}
}

func TestTheToolsAreRepeatableDocumentedAndOfferedWhereThereIsAWorkspace(t *testing.T) {
	all := Tools(Options{Now: time.Now, Has: func(chat *v1alpha1.Chat) bool { return chat.Name == "with" }})
	registry := tools.NewRegistry(all...)
	for _, tool := range all {
		if _, ok := tool.(tools.Documented); !ok || !registry.Repeatable(tool.Name()) {
			t.Errorf("%s is not documented or not repeatable", tool.Name())
		}
	}
	for name, want := range map[string]int{"with": 11, "without": 0} {
		chat := &v1alpha1.Chat{}
		chat.Name = name
		if got := tools.Suited(registry.Active(nil), chat); len(got) != want {
			t.Errorf("a chat %s a workspace is offered %d tools", name, len(got))
		}
	}
	if got := tools.Suited(tools.NewRegistry(Tools(Options{})...).Active(nil), &v1alpha1.Chat{}); len(got) != 11 {
		t.Errorf("%d tools are offered where every chat has a workspace", len(got))
	}
	sub := &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{ParentRef: &v1alpha1.ChatReference{Name: "with"}}}
	sub.Name = "with"
	for _, tool := range tools.Suited(registry.Active(nil), sub) {
		if tool.Name() == "start_workspace" || tool.Name() == "stop_workspace" {
			t.Errorf("a sub-chat is offered %s", tool.Name())
		}
	}
}

func TestEveryFieldOfAResultIsDocumented(t *testing.T) {
	for _, tool := range Tools(Options{}) {
		reference := tool.(tools.Documented).Reference()
		if reference.Offered == "" || len(reference.Limits) == 0 {
			t.Errorf("%s: the reference says too little", tool.Name())
		}
		for field := range reflect.TypeOf(reference.Result).Fields() {
			if field.Tag.Get("doc") == "" || field.Tag.Get("json") == "" {
				t.Errorf("%s: %s has no doc or no name", tool.Name(), field.Name)
			}
		}
	}
}
