// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonschema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"parley.dev/parley/internal/text/jsonschema"
	"parley.dev/parley/test/kit/check"
)

const person = `{"type":"object","required":["name","age"],"additionalProperties":false,"properties":{
	"name":{"type":"string","maxLength":3000000000},"age":{"type":"integer","maximum":9007199254740993},
	"tags":{"type":"array","items":{"$ref":"#/$defs/tag"}}},
	"$defs":{"tag":{"type":"string","pattern":"^(?!x)[a-z]+$"}}}`

func TestProblemsNameTheirPlace(t *testing.T) {
	schema, err := jsonschema.Compile(person)
	check.OK(t, err)
	for text, want := range map[string]string{
		`{"name":"a","age":9007199254740993}`: "",
		`{"name":"a","age":3,"tags":["b"]}`:   "",
		`{"name":null,"age":3}`:               "/name: got null, want string",
		`{"age":3}`:                           "the value: missing property 'name'",
		`{"name":"a","age":9007199254740994}`: "/age: must be at most 9007199254740993, and is 9007199254740994",
		`{"name":"a","age":3,"tags":[7]}`:     "/tags/0: got number, want string",
		`{"name":"a","age":3,"x":1}`:          "additional properties 'x' not allowed",
		`{"name":"a","age":1e9999999}`:        "/age",
		`{"name":"a","age":1e1000}`:           "/age",
		`{"name":"a","age":3} and more`:       "it is not one JSON value",
		`Here you are.`:                       "it is not one JSON value",
	} {
		got := schema.Problems(text)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestInvalidSchemasAreExplained(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"text"}`:                  "/type",
		`{"properties":{"a":"string"}}`:    "/properties/a",
		`{"$ref":"#/$defs/none"}`:          "none",
		`{"$ref":"https://example.com/s"}`: "not supported",
		`{"$ref":"file:///etc/passwd"}`:    "not supported",
		`{"type":`:                         "reading the JSON Schema",
	} {
		if _, err := jsonschema.Compile(schema); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func TestManyProblemsAreBounded(t *testing.T) {
	schema, err := jsonschema.Compile(`{"items":{"type":"string"}}`)
	check.OK(t, err)
	got := schema.Problems("[" + strings.Repeat("1,", 999) + "1]")
	if !strings.HasSuffix(got, "; and 992 more problems") || len(got) > 3000 {
		t.Errorf("got %s", got)
	}
}

func TestProblemsAreTheSameEachTime(t *testing.T) {
	schema, err := jsonschema.Compile(`{"additionalProperties":false,"properties":{"a":{"type":"null"},"b":{"type":"null"}}}`)
	check.OK(t, err)
	const want = "/a: got number, want null; /b: got number, want null; " +
		"the value: additional properties 'c', 'd' not allowed"
	for range 20 {
		if got := schema.Problems(`{"a":1,"b":2,"c":3,"d":4}`); got != want {
			t.Fatalf("got %s", got)
		}
	}
}

func TestRefusedSchemasHaveAProblem(t *testing.T) {
	for schema, place := range map[string]string{
		`{"properties":[]}`:                                          `/properties`,
		`{"properties":null}`:                                        `/properties`,
		`{"properties":{"a":null}}`:                                  `/properties/a`,
		`{"properties":{"a":"string"}}`:                              `/properties/a`,
		`{"required":true}`:                                          `/required`,
		`{"required":[1]}`:                                           `/required/0`,
		`{"properties":{"a":{"required":true}}}`:                     `/properties/a/required`,
		`{"properties":{"a":{"type":"text"}}}`:                       `/properties/a/type`,
		`{"properties":{"a":{"type":["string",null]}}}`:              `/properties/a/type`,
		`{"properties":{"a":{"enum":"b"}}}`:                          `/properties/a/enum`,
		`{"properties":{"a":{"items":"string"}}}`:                    `/properties/a/items`,
		`{"properties":{"a":{"items":[7]}}}`:                         `/properties/a/items`,
		`{"properties":{"a":{"anyOf":{"type":"string"}}}}`:           `/properties/a/anyOf`,
		`{"properties":{"a":{"description":7}}}`:                     `/properties/a/description`,
		`{"properties":{"a":{"minimum":"1"}}}`:                       `/properties/a/minimum`,
		`{"properties":{"a":{"exclusiveMinimum":true}}}`:             `/properties/a/exclusiveMinimum`,
		`{"properties":{"a":{"$ref":"#/$defs/none"}}}`:               `#/$defs/none`,
		`{"properties":{"a":{"$ref":7}}}`:                            `/properties/a/$ref`,
		`{"$defs":{"b":{"$ref":"#/$defs/none"}},"$ref":"#/$defs/b"}`: `#/$defs/none`,
	} {
		if err := jsonschema.Check(schema); err == nil || !strings.Contains(err.Error(), place) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func TestSchemasOfToolsHaveNoProblem(t *testing.T) {
	for _, schema := range []string{
		`{}`,
		`{"type":"object","properties":{"required":{"type":["string","null"]},"properties":true,"enum":{"const":{"required":true}}}}`,
		`{"properties":{"a":{"default":{"properties":[]},"enum":[null,{"type":7}],"examples":[{"required":1}]}}}`,
		`{"properties":{"a":{"items":[{"type":"string"},false]},"b":{"items":{"$ref":"#"}}}}`,
		`{"properties":{"a":{"$ref":"#/definitions/b"}},"definitions":{"b":true}}`,
		`{"properties":{"a":{"pattern":"^(?!x)","maxLength":9007199254740991,"maximum":1e308,"x-own":7,"format":"own"}}}`,
		`{"properties":{"a":{"$ref":"#b"},"c":{"$ref":"https://example.com/x.json"}},"$defs":{"b":{"$anchor":"b"}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"#/definitions/b"}},"definitions":{"b":{}}}`,
		`{"$schema":"https://example.com/own","type":"object"}`,
	} {
		if err := jsonschema.Check(schema); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func TestOutputsAreObjectsOfBoundedSize(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object"}`:                     "",
		`{"type":["object"]}`:                   "its type must be object",
		`{"$ref":"#/$defs/a","$defs":{"a":{}}}`: "its type must be object",
		`true`:                                  "its type must be object",
		`7`:                                     "invalid",
		`{"type":"object","required":"a"}`:      "/required",
		strings.Repeat(" ", 64<<10) + `{"type":"object"}`: "65553 bytes",
	} {
		if _, _, err := jsonschema.CompileOutput([]byte(schema)); (want == "") != (err == nil) ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v", schema, err)
		}
	}
}

func TestOutputsKeepGreatIntegers(t *testing.T) {
	const given = `{"properties":{"a":{"maximum":9007199254740993}},"type":"object"}`
	_, object, err := jsonschema.CompileOutput([]byte(given))
	if got, _ := json.Marshal(object); err != nil || string(got) != given {
		t.Errorf("got %s, %v", got, err)
	}
}
