// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonschema_test

import (
	"encoding/json"
	"fmt"
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
		check.Contains(t, fmt.Sprint(jsonschema.Check(schema)), place)
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

// doubled is a schema that applies the last of its definitions 2^40 times, through what each says of the next.
func doubled(each, last string) string {
	var defs []string
	for i := range 40 {
		next := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
		defs = append(defs, fmt.Sprintf(`"d%d":`, i)+strings.ReplaceAll(each, "NEXT", next))
	}
	return `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `,"d40":` + last + `}}`
}

func TestHostileSchemasAndValuesEnd(t *testing.T) {
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	wide := "[" + strings.Repeat("1,", 400_000) + "1]"
	for name, c := range map[string]struct{ schema, text, want string }{
		"a huge exponent with a bound": {`{"properties":{"a":{"minimum":1}}}`, `{"a":1e9999999}`, "/a is out of range"},
		"many huge exponents": {`{"items":{"type":"integer"}}`, "[" + strings.Repeat("1e999999,", 1000) + "1]",
			"is out of range"},
		"a tiny exponent":               {`{"type":"integer"}`, `1e-999999`, "is out of range"},
		"a long number":                 {`{"type":"integer"}`, strings.Repeat("1", 1_000_000), "is out of range"},
		"alternatives that double":      {doubled(`{"allOf":[NEXT,NEXT]}`, `{"type":"object"}`), `{}`, "too long"},
		"those that fail":               {doubled(`{"anyOf":[NEXT,NEXT]}`, `{"type":"array"}`), `{}`, "too long"},
		"within a not":                  {`{"not":` + doubled(`{"anyOf":[NEXT,NEXT]}`, `{"maxProperties":0}`), `{"a":1}`, "too long"},
		"dependent schemas in a not":    {`{"not":` + doubled(`{"dependentSchemas":{"a":NEXT,"b":NEXT}}`, `{"maxProperties":0}`), `{"a":1,"b":1}`, "too long"},
		"a tree that doubles":           {`{"items":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}`, strings.Repeat("[", 50) + strings.Repeat("]", 50), "too long"},
		"a schema that is its own":      {`{"$ref":"#"}`, `1`, "cycle"},
		"a value that is deeply nested": {`{"items":{"$ref":"#"}}`, deep, "within each other"},
		"a long list":                   {`{"items":{"type":"string"}}`, wide, "too long"},
		"a pattern that is slow": {`{"items":{"pattern":"^(a|aa|aaa|b?){1,900}$"}}`,
			`["` + strings.Repeat("a", 500_000) + `"]`, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(c.schema, `{"not":`) { // Definitions stand at the top.
				at := strings.Index(c.schema, `,"$defs"`)
				c.schema = c.schema[:at] + "}" + c.schema[at:]
			}
			schema, err := jsonschema.Compile(c.schema)
			check.OK(t, err)
			if got := schema.Problems(c.text); !strings.Contains(got, c.want) {
				t.Errorf("got %.200s", got)
			}
			if got := schema.Problems(c.text); !strings.Contains(got, c.want) {
				t.Errorf("again: %.200s", got)
			}
		})
	}
}

func TestLargePatternsAreNotCompiled(t *testing.T) {
	var properties []string
	for i := range 20 {
		properties = append(properties, fmt.Sprintf(`"p%d":{"pattern":"(%s){1000}"}`, i, strings.Repeat("a", 3000)))
	}
	schema, err := jsonschema.Compile(`{"properties":{` + strings.Join(properties, ",") + `}}`)
	check.OK(t, err)
	check.Equal(t, "problems of a text that the pattern excludes", "", schema.Problems(`{"p0":"b"}`))
}

func TestEachUnsupportedPatternKeepsItsSchema(t *testing.T) {
	schema, err := jsonschema.Compile(`{"patternProperties":{"^(?!x-)":{"type":"string"},"^(?=y)":{"maxLength":2}}}`)
	check.OK(t, err)
	check.Contains(t, schema.Problems(`{"a":1}`), "string")
	check.Contains(t, schema.Problems(`{"a":"long"}`), "2")
}

func TestSchemasBeyondTheLimitsAreInvalid(t *testing.T) {
	for schema, want := range map[string]string{
		`{"minimum":1e999999}`: "out of range",
		strings.Repeat(`{"not":`, 200) + "{}" + strings.Repeat("}", 200): "within each other",
		`{"$dynamicRef":"#a","$defs":{"b":{"$dynamicAnchor":"a"}}}`:      "$dynamicRef",
		`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`:        "not supported",
	} {
		if _, err := jsonschema.Compile(schema); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v", schema, err)
		}
	}
}
