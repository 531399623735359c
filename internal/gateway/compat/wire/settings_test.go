// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/test/kit/check"
)

// refuses checks that an error is a refusal of a field, which its message names.
func refuses(t *testing.T, err error, field, part string) {
	t.Helper()
	no, ok := errors.AsType[*wire.Error](err)
	if !ok || no.Status != 400 || no.Param == nil || *no.Param != field || !strings.Contains(no.Message, field) ||
		!strings.Contains(no.Message, part) {
		t.Errorf("refused with %+v", err)
	}
}

func TestToolDescriptionsHaveTheLimitOfTheAPI(t *testing.T) {
	function := func(f *wire.Function) (string, *wire.Function) { return wire.KindFunction, f }
	longest := strings.Repeat("é", v1beta1.MaxToolDescription)
	got, err := wire.Tools([]wire.Function{{Name: "a", Description: longest}}, function, nil)
	check.OK(t, err)
	check.Equal(t, "tools", []v1beta1.ClientTool{{Name: "a", Description: longest}}, got)
	_, err = wire.Tools([]wire.Function{{Name: "a", Description: longest + "x"}}, function, nil)
	check.Contains(t, fmt.Sprint(err), "function a has more than 16384 characters")
}

func TestFormatsBecomeOutputs(t *testing.T) {
	for format, want := range map[string]string{
		`{}`:                      "",
		`{"type": "text"}`:        "",
		`{"type": "json_object"}`: `{"type":"object"}`,
		`{"type": "json_object", "schema": {"type": "object", "required": ["a"]}}`:                         `{"type":"object"}`,
		`{"type": "json_schema", "name": "n", "strict": false, "schema": {"type": "object"}}`:              `{"type": "object"}`,
		`{"type": "json_schema", "description": "d", "schema": {"type": "object"}}`:                        `{"description":"d","type":"object"}`,
		`{"type": "json_schema", "description": "d", "schema": {"type": "object", "description": "mine"}}`: `{"type": "object", "description": "mine"}`,
	} {
		var f wire.Format
		check.OK(t, json.Unmarshal([]byte(format), &f))
		output, err := f.Output("format", "format.schema")
		got := ""
		if output != nil {
			got = string(output.Schema.Raw)
		}
		if err != nil || got != want {
			t.Errorf("%s is %s, %v", format, got, err)
		}
	}
}

func TestFormatsThatCannotBeUsedNameTheirField(t *testing.T) {
	long := `{"type": "json_schema", "schema": {"type": "object", "x": "` + strings.Repeat("x", 64<<10) + `"}}`
	for format, want := range map[string]struct{ field, part string }{
		`{"type": "grammar"}`:                                           {"format", "grammar"},
		`{"type": "json_schema"}`:                                       {"format.schema", "missing"},
		`{"type": "json_schema", "schema": null}`:                       {"format.schema", "missing"},
		`{"type": "json_schema", "schema": {}}`:                         {"format.schema", "type must be object"},
		`{"type": "json_schema", "schema": {"type": "array"}}`:          {"format.schema", "type must be object"},
		`{"type": "json_schema", "schema": {"type": "text"}}`:           {"format.schema", "/type"},
		`{"type": "json_schema", "schema": {"$ref": "https://a.test"}}`: {"format.schema", "not supported"},
		long: {"format.schema", "65536"},
	} {
		var f wire.Format
		check.OK(t, json.Unmarshal([]byte(format), &f))
		_, err := f.Output("format", "format.schema")
		refuses(t, err, want.field, want.part)
	}
}

func TestStopsAreOneTextOrAList(t *testing.T) {
	long := strings.Repeat("ä", 256)
	for raw, want := range map[string][]string{
		``: nil, `null`: nil, `[]`: nil, `""`: nil, `"x"`: {"x"}, `["x", "\n\n"]`: {"x", "\n\n"}, `["` + long + `"]`: {long},
	} {
		got, err := wire.Stops("stop", json.RawMessage(raw))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", raw, err, diff)
		}
	}
	for _, raw := range []string{`7`, `[7]`, `[""]`, `["a", "b", "c", "d", "e"]`, `["` + long + `x"]`} {
		_, err := wire.Stops("stop", json.RawMessage(raw))
		refuses(t, err, "stop", "")
	}
}

func TestChoicesOfToolsAreRead(t *testing.T) {
	for raw, want := range map[string]*v1beta1.ToolChoice{
		``: nil, `null`: nil, `"auto"`: nil, `"none"`: {Type: v1beta1.ToolChoiceNone},
		`"required"`:                                      {Type: v1beta1.ToolChoiceRequired},
		`{"type": "function", "name": "f"}`:               {Type: v1beta1.ToolChoiceTool, Tool: "f"},
		`{"type": "function", "function": {"name": "f"}}`: {Type: v1beta1.ToolChoiceTool, Tool: "f"},
	} {
		got, err := wire.Choice("tool_choice", json.RawMessage(raw))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", raw, err, diff)
		}
	}
	for raw, part := range map[string]string{
		`7`: "neither", `"sometimes"`: "sometimes", `{"type": "allowed_tools", "mode": "auto"}`: "to allow some tools only",
		`{"type": "function"}`: "names no tool", `{"type": "function", "name": "` + strings.Repeat("f", 65) + `"}`: "names no tool",
	} {
		_, err := wire.Choice("tool_choice", json.RawMessage(raw))
		refuses(t, err, "tool_choice", part)
	}
}

func TestFailuresHaveTheirStatus(t *testing.T) {
	for reason, status := range map[v1beta1.ErrorReason]int{
		v1beta1.ErrorOutputInvalid: 502, v1beta1.ErrorOutputSchemaInvalid: 400, v1beta1.ErrorBudgetReached: 429,
	} {
		if got := wire.Failure(&stream.Error{Reason: reason, Message: "m"}); got.Status != status {
			t.Errorf("%s is %+v", reason, got)
		}
	}
}

func TestContentIsATextOrParts(t *testing.T) {
	type part struct{ Type, Text string }
	asText := func(p *part, _ string) (v1beta1.MessagePart, error) { return wire.Text(p.Text), nil }
	for raw, want := range map[string][]string{`null`: nil, `"a"`: {"a"},
		`[{"type": "text", "text": "a"}, {"text": " "}]`: {"a"}} {
		var c wire.Content[part]
		check.OK(t, json.Unmarshal([]byte(raw), &c))
		parts, err := c.Parts("content", asText)
		check.OK(t, err)
		var texts []string
		for _, p := range parts {
			texts = append(texts, *p.Text)
		}
		check.Equal(t, raw, want, texts)
	}
}

func TestFirstUnsupportedFieldIsRefused(t *testing.T) {
	type fields struct {
		N json.RawMessage `json:"n" instead:"there is one answer" harmless:"1"`
		M json.RawMessage `json:"m" instead:"leave it out"`
	}
	for raw, field := range map[string]string{`{}`: "", `{"n": 1, "m": []}`: "", `{"n": 2, "m": 1}`: "n",
		`{"m": 1}`: "m"} {
		var f fields
		check.OK(t, json.Unmarshal([]byte(raw), &f))
		if err := wire.Refuse(f); field != "" {
			refuses(t, err, field, "cannot be honoured")
		} else {
			check.OK(t, err)
		}
	}
}
