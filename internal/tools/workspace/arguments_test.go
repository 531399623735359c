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

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/schema"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

func TestInvalidArgumentsAreRejectedBeforeContactingWorkspace(t *testing.T) {
	b := newBench(t)
	for call, want := range map[string]string{
		`execute {}`:                                                   "missing property 'command'",
		`execute {"command":""}`:                                       "/command: must have at least 1 characters, and has 0",
		`execute {"command":" \n"}`:                                    "command is empty or has a NUL",
		`execute {"command":"&"}`:                                      "command is empty or has a NUL",
		`execute {"command":"a\u0000b"}`:                               "command is empty or has a NUL",
		`execute {"command":"x","timeout":0}`:                          "/timeout: must be at least 1, and is 0",
		`execute {"command":"x","timeout":14401}`:                      "/timeout: must be at most 14400, and is 14401",
		`execute {"command":"x","timeout":"10s"}`:                      "/timeout: got string, want integer",
		`execute {"command":"x","cmd":"y","env":{}}`:                   `additional properties 'cmd', 'env' not allowed. The arguments are: command (required), run_in_background, timeout, workdir.`,
		`execute {"command":"x","run_in_background":"yes"}`:            "/run_in_background: got string, want boolean",
		`process_output {"process_id":"p1","wait_timeout":-1}`:         "/wait_timeout: must be at least 0, and is -1",
		`process_output {}`:                                            "missing property 'process_id'",
		`process_list {"all":true}`:                                    `additional properties 'all' not allowed`,
		`process_signal {"process_id":"p1","signal":"hangup"}`:         "/signal: value must be one of 'terminate', 'kill', 'interrupt'",
		`process_signal {"process_id":"p1"}`:                           "missing property 'signal'",
		`read_file {"path":"a","offset":0}`:                            "/offset: must be at least 1, and is 0",
		`read_file {"path":"a","limit":10001}`:                         "/limit: must be at most 10000, and is 10001",
		`read_file {"file":"a"}`:                                       `missing property 'path'; the value: additional properties 'file' not allowed`,
		`write_file {"path":"a"}`:                                      "missing property 'content'",
		`write_file {"path":"a","content":{"a":1}}`:                    "/content: got object, want string",
		`edit_files {"edits":[]}`:                                      "/edits: must have at least 1 items",
		`edit_files {"edits":[{"path":"a","search":"x"}]}`:             "/edits/0: missing properties 'old_text', 'new_text'; /edits/0: additional properties 'search' not allowed",
		`search_files {"pattern":"x","context":11}`:                    "/context: must be at most 10, and is 11",
		`search_files {"pattern":"x","limit":1001}`:                    "/limit: must be at most 1000, and is 1001",
		`search_files {"pattern":"` + strings.Repeat("x", 1025) + `"}`: "/pattern: must have at most 1024 characters, and has 1025",
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
		own := tool.Definition().InputSchema
		if own["additionalProperties"] != false || tool.Definition().Description == "" {
			t.Errorf("%s: the schema or the description says too little", tool.Definition().Name)
		}
		var plain schema.Object
		raw, err := json.Marshal(own)
		if err == nil {
			err = json.Unmarshal(raw, &plain)
		}
		check.OK(t, err)
		for provider, fit := range map[string]func(schema.Object) (schema.Object, []string){
			"Anthropic": schema.ForAnthropic, "OpenAI": schema.ForOpenAI, "Gemini": schema.ForGemini,
		} {
			if got, left := fit(plain); len(left) != 0 || !cmp.Equal(got, plain) {
				t.Errorf("%s: for %s, %q is left out: %s", tool.Definition().Name, provider, left, cmp.Diff(plain, got))
			}
		}
	}
}

func TestToolsAreRepeatableDocumentedAndNeedAWorkspace(t *testing.T) {
	all := Tools(Options{Now: time.Now, Has: func(chat *v1beta1.Chat) bool { return chat.Name == "with" }})
	registry := tools.NewRegistry(all...)
	for _, tool := range all {
		if d := tool.Definition(); d.Reference.Offered == "" || !d.Repeatable {
			t.Errorf("%s is not documented or not repeatable", d.Name)
		}
	}
	for name, want := range map[string]int{"with": 11, "without": 0} {
		chat := &v1beta1.Chat{}
		chat.Name = name
		if got := registry.Suited(chat); len(got) != want {
			t.Errorf("a chat %s a workspace is offered %d tools", name, len(got))
		}
	}
	if got := tools.NewRegistry(Tools(Options{})...).Suited(&v1beta1.Chat{}); len(got) != 11 {
		t.Errorf("%d tools are offered where every chat has a workspace", len(got))
	}
	sub := &v1beta1.Chat{Spec: v1beta1.ChatSpec{ParentRef: &v1beta1.ChatReference{Name: "with"}}}
	sub.Name = "with"
	for _, tool := range registry.Suited(sub) {
		if tool.Name == "start_workspace" || tool.Name == "stop_workspace" {
			t.Errorf("a sub-chat is offered %s", tool.Name)
		}
	}
}

func TestEveryFieldOfAResultIsDocumented(t *testing.T) {
	for _, tool := range Tools(Options{}) {
		reference := tool.Definition().Reference
		if reference.Offered == "" || len(reference.Limits) == 0 {
			t.Errorf("%s: the reference says too little", tool.Definition().Name)
		}
		for field := range reflect.TypeOf(reference.Result).Fields() {
			if field.Tag.Get("doc") == "" || field.Tag.Get("json") == "" {
				t.Errorf("%s: %s has no doc or no name", tool.Definition().Name, field.Name)
			}
		}
	}
}
