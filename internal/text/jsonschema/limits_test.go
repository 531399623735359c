// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonschema_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/internal/text/jsonschema"
	"parley.dev/parley/test/kit/check"
)

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
			began := time.Now()
			if got := schema.Problems(c.text); !strings.Contains(got, c.want) {
				t.Errorf("got %.200s", got)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it takes %v", took)
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
	began := time.Now()
	schema, err := jsonschema.Compile(`{"properties":{` + strings.Join(properties, ",") + `}}`)
	if err != nil || time.Since(began) > 5*time.Second {
		t.Fatalf("%v after %v", err, time.Since(began))
	}
	if got := schema.Problems(`{"p0":"b"}`); got != "" {
		t.Errorf("got %s", got)
	}
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
