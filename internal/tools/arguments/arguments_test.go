// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments_test

import (
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/test/kit/check"
)

var schema = arguments.Object(map[string]any{
	"name":  arguments.Text(1, 5, ""),
	"count": arguments.Integer(1, 10, 3, ""),
	"big":   map[string]any{"type": "integer"},
	"on":    arguments.Boolean(""),
	"kind":  arguments.OneOf("", "a", "b"),
	"list": map[string]any{"type": "array", "minItems": 1, "maxItems": 2,
		"items": arguments.Object(map[string]any{"x": map[string]any{"type": "string"}}, "x")},
}, "name")

type args struct {
	Name  string               `json:"name"`
	Count int                  `json:"count"`
	Big   int64                `json:"big"`
	On    bool                 `json:"on"`
	Kind  string               `json:"kind"`
	List  []struct{ X string } `json:"list"`
}

func TestArgumentsAreDecodedWithDefaults(t *testing.T) {
	for input, want := range map[string]args{
		`{"name":"n"}`:                              {Name: "n", Count: 3},
		`{"name":"größe"}`:                          {Name: "größe", Count: 3},
		`{"name":"n","count":null,"list":null}`:     {Name: "n", Count: 3},
		`{"name":"n","count":10.0,"on":true}`:       {Name: "n", Count: 10, On: true},
		`{"name":"n","kind":"b","list":[{"x":""}]}`: {Name: "n", Count: 3, Kind: "b", List: []struct{ X string }{{}}},
		`{"name":"n","big":9007199254740992}`:       {Name: "n", Count: 3, Big: 1 << 53},
	} {
		var got args
		check.OK(t, arguments.Decode(schema, input, &got))
		check.Equal(t, input, want, got)
	}
}

func TestInvalidArgumentsReturnErrors(t *testing.T) {
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
		err := arguments.Decode(schema, input, &args{})
		check.Equal(t, input, "the call was not made: "+want+"."+tail, fmt.Sprint(err))
	}
	for input, want := range map[string]string{`{"name":"n","big":1e999}`: "big is out of range",
		`["name"]`: "the value: got array, want object", `{"name"`: "reading its arguments"} {
		check.Contains(t, fmt.Sprint(arguments.Decode(schema, input, &args{})), want)
	}
}

func TestManyProblemsAreShortened(t *testing.T) {
	var unknown []string
	for i := range 1000 {
		unknown = append(unknown, fmt.Sprintf("%q:1", strings.Repeat("u", 1000)+fmt.Sprint(i)))
	}
	err := arguments.Decode(schema, `{`+strings.Join(unknown, ",")+`,"kind":"`+strings.Repeat("k", 1<<20)+`"}`, &args{})
	if err == nil || len(err.Error()) > 2000 {
		t.Errorf("got %.3000v", err)
	}
}
