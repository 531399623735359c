// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package toolpage

import (
	"context"
	"strings"
	"testing"

	"parley.dev/parley/internal/tools"
)

// documented is a tool whose calls have such a result.
type documented struct{ result any }

func (documented) Run(context.Context, tools.Call) (string, error) { return "", nil }
func (d documented) Definition() tools.Definition {
	return tools.Definition{
		Name: "a_tool", Description: "Does it.",
		InputSchema: map[string]any{
			"type": "object", "required": []string{"z", "y"},
			"properties": map[string]any{
				"a": map[string]any{"type": "integer", "maximum": 9, "default": 4, "description": "One | of *two*."},
				"y": map[string]any{"type": "string", "enum": []string{"p", "q"}},
				"z": map[string]any{"type": "array", "minItems": 1, "items": map[string]any{
					"type": "object", "properties": map[string]any{"in": map[string]any{"type": "boolean"}},
				}},
			},
		},
		Reference: tools.Reference{Offered: "no chat", Result: d.result, Errors: []string{"It fails."}},
	}
}

func TestATableHasEveryArgumentAndEveryField(t *testing.T) {
	type entry struct {
		N *int `json:"n,omitempty" doc:"A number."`
	}
	page, err := render([]tools.Tool{documented{result: struct {
		List  []entry  `json:"list" doc:"Entries."`
		Words []string `json:"words" doc:"Words."`
		On    bool     `json:"on" doc:"Whether."`
	}{}}})
	if err != nil {
		t.Fatal(err)
	}
	want := "| [`a_tool`](#a_tool) | no chat | no | no |\n\n## a_tool\n\nDoes it.\n\n" +
		"| Argument | Type | Default | Bounds | What it is |\n| --- | --- | --- | --- | --- |\n" +
		"| `z` | list | required | at least 1 entries |  |\n" +
		"| `z[].in` | boolean | — | — |  |\n" +
		"| `y` | text | required | `p`, `q` |  |\n" +
		"| `a` | integer | `4` | at most 9 | One \\| of \\*two\\*. |\n\n" +
		"| Result | Type | What it is |\n| --- | --- | --- |\n" +
		"| `list` | list | Entries. |\n| `list[].n` | integer, optional | A number. |\n" +
		"| `words` | list of texts | Words. |\n| `on` | boolean | Whether. |\n\n" +
		"Errors and failures:\n\n- It fails.\n"
	if !strings.HasSuffix(string(page), want) {
		t.Errorf("got\n%s", page)
	}
}

func TestUndocumentedToolIsRejected(t *testing.T) {
	for name, tool := range map[string]tools.Tool{
		"no result":          documented{},
		"a field without it": documented{result: struct{ A string }{}},
	} {
		if _, err := render([]tools.Tool{tool}); err == nil {
			t.Errorf("%s passed", name)
		}
	}
}
