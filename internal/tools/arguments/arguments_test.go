// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/internal/tools/arguments"
)

var schema = map[string]any{
	"type": "object",
	"properties": map[string]any{
		"name":  map[string]any{"type": "string", "minLength": 1, "maxLength": 5},
		"count": map[string]any{"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
		"big":   map[string]any{"type": "integer"},
		"on":    map[string]any{"type": "boolean", "default": false},
		"kind":  map[string]any{"type": "string", "enum": []string{"a", "b"}},
		"list": map[string]any{
			"type": "array", "minItems": 1, "maxItems": 2,
			"items": map[string]any{
				"type": "object", "additionalProperties": false, "required": []string{"x"},
				"properties": map[string]any{"x": map[string]any{"type": "string"}},
			},
		},
	},
	"required":             []string{"name"},
	"additionalProperties": false,
}

type given struct {
	Name  string               `json:"name"`
	Count int                  `json:"count"`
	Big   int64                `json:"big"`
	On    bool                 `json:"on"`
	Kind  string               `json:"kind"`
	List  []struct{ X string } `json:"list"`
}

func TestGoodArgumentsAreDecodedWithDefaults(t *testing.T) {
	for input, want := range map[string]given{
		`{"name":"n"}`:                              {Name: "n", Count: 3},
		`{"name":"größe"}`:                          {Name: "größe", Count: 3},
		`{"name":"n","count":null,"list":null}`:     {Name: "n", Count: 3},
		`{"name":"n","count":10.0,"on":true}`:       {Name: "n", Count: 10, On: true},
		`{"name":"n","kind":"b","list":[{"x":""}]}`: {Name: "n", Count: 3, Kind: "b", List: []struct{ X string }{{}}},
		`{"name":"n","big":9007199254740992}`:       {Name: "n", Count: 3, Big: 1 << 53},
	} {
		var got given
		if err := arguments.Decode(schema, input, &got); err != nil {
			t.Errorf("%s: %v", input, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", input, diff)
		}
	}
}

func TestInvalidArgumentsAreNamed(t *testing.T) {
	const tail = " The arguments are: name (required), big, count, kind, list, on. Correct them and call again"
	for input, want := range map[string]string{
		`{}`:                                   "the value: missing property 'name'",
		`{"name":null}`:                        "the value: missing property 'name'",
		`{"name":""}`:                          "/name: must have at least 1 characters, and has 0",
		`{"name":"sixsix"}`:                    "/name: must have at most 5 characters, and has 6",
		`{"name":7}`:                           "/name: got number, want string",
		`{"name":"n","count":0}`:               "/count: must be at least 1, and is 0",
		`{"name":"n","count":1.5}`:             "/count: got number, want integer",
		`{"name":"n","count":"3"}`:             "/count: got string, want integer",
		`{"name":"n","count":1e2}`:             "/count: must be at most 10, and is 100",
		`{"name":"n","on":"yes"}`:              "/on: got string, want boolean",
		`{"name":"n","kind":"c"}`:              "/kind: value must be one of 'a', 'b'",
		`{"name":"n","list":{}}`:               "/list: got object, want array",
		`{"name":"n","list":[]}`:               "/list: must have at least 1 items, and has 0",
		`{"name":"n","list":[null]}`:           "/list/0: got null, want object",
		`{"name":"n","list":[{"x":"","y":1}]}`: "/list/0: additional properties 'y' not allowed",
	} {
		want := "the call was not made: " + want + "." + tail
		if err := arguments.Decode(schema, input, &given{}); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", input, err, want)
		}
	}
	if err := arguments.Decode(schema, `{"name":"n","big":1e999}`, &given{}); err == nil ||
		!strings.Contains(err.Error(), "big is out of range") {
		t.Errorf("a huge number: %v", err)
	}
	if err := arguments.Decode(schema, `["name"]`, &given{}); err == nil ||
		!strings.Contains(err.Error(), "the value: got array, want object") {
		t.Errorf("a list: %v", err)
	}
	if err := arguments.Decode(schema, `{"name"`, &given{}); err == nil {
		t.Error("half an object was taken")
	}
}

func TestManyProblemsAreToldShortly(t *testing.T) {
	var unknown []string
	for i := range 1000 {
		unknown = append(unknown, fmt.Sprintf("%q:1", strings.Repeat("u", 1000)+fmt.Sprint(i)))
	}
	err := arguments.Decode(schema, `{`+strings.Join(unknown, ",")+`,"kind":"`+strings.Repeat("k", 1<<20)+`"}`, &given{})
	if err == nil || len(err.Error()) > 2000 {
		t.Errorf("got %.3000v", err)
	}
}
