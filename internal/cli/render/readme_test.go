// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// demoScript has what the scripted model of the demo writes.
type demoScript struct {
	Rules []struct {
		Match struct{ LastUserText string }
		Reply struct {
			Steps []struct {
				Text      struct{ Value string }
				ToolCalls []struct {
					Name      string
					Arguments json.RawMessage
				}
			}
		}
	}
}

// demoResults are the results of the calls of the demo's chat, in their order.
var demoResults = []string{
	`{"size":71}`,
	`{"output":"Greet whom?\n","exit_code":3,"wall_duration_ms":17}`,
	`{"files":[{"diff":"--- greet.sh\n+++ greet.sh\n@@ -1,2 +1,2 @@\n` +
		`-[ -n \"$NAME\" ] || { echo 'Greet whom?'; exit 3; }\n-echo \"Hello, $NAME!\"\n` +
		`+[ -n \"$1\" ] || { echo 'Greet whom?'; exit 3; }\n+echo \"Hello, $1!\"\n"}]}`,
	`{"output":"Hello, world!\n","exit_code":0,"wall_duration_ms":6}`,
}

// demoEvents are the messages of the demo's chat with a workspace.
func demoEvents(t *testing.T) (all events) {
	t.Helper()
	var chat v1beta1.Chat
	var script demoScript
	for path, into := range map[string]any{
		"../../../config/samples/workspace.yaml":       &chat,
		"../../../test/modelserver/testdata/demo.yaml": &script,
	} {
		text, err := os.ReadFile(path)
		check.OK(t, err)
		check.OK(t, yaml.Unmarshal(text, into))
	}
	all = events{{Name: stream.EventMessage, Data: []byte(`{"message":{"role":"User","content":` + asJSON(t,
		chat.Spec.Prompt) + `}}`)}}
	calls := 0
	for _, rule := range script.Rules {
		if rule.Match.LastUserText != "greet.sh" {
			continue
		}
		for _, step := range rule.Reply.Steps {
			if step.Text.Value != "" {
				all = append(all, called(4, `{"type":"Text","text":`+asJSON(t, step.Text.Value)+`}`))
			}
			for _, call := range step.ToolCalls {
				id := fmt.Sprint(calls)
				all = append(all, madeCall(t, id, call.Name, string(call.Arguments)),
					answered(t, id, call.Name, demoResults[calls]))
				calls++
			}
		}
	}
	return all
}

func TestREADMEShowsTheOutputOfTheDemo(t *testing.T) {
	page, err := os.ReadFile("../../../README.md")
	check.OK(t, err)
	_, screen, _ := strings.Cut(string(page), "    $ kubectl chat show worker\n")
	screen, _, _ = strings.Cut(screen, "    $ ")
	var out strings.Builder
	p := NewPrinter(&out, &strings.Builder{}, false, hints)
	for _, e := range demoEvents(t) {
		check.OK(t, p.Event(e, true))
	}
	check.Equal(t, "the screen", strings.TrimPrefix(strings.ReplaceAll("\n"+screen, "\n    ", "\n"), "\n"), out.String())
}
