// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/internal/generation/provider/schema"
	"parley.dev/parley/test/kit/check"
)

func decode(t *testing.T, text string) schema.Object {
	t.Helper()
	var out schema.Object
	check.OK(t, json.Unmarshal([]byte(text), &out))
	return out
}

func TestASchemaIsWhatEachProviderTakes(t *testing.T) {
	for name, c := range map[string]struct {
		fit         func(schema.Object) (schema.Object, []string)
		given, want string
		left        []string
	}{
		"Anthropic takes references and whatever is not at the top": {
			schema.ForAnthropic,
			`{"type":"object","oneOf":[{}],"$defs":{"a":{"oneOf":[{}]}},"properties":{"x":{"$ref":"#/$defs/a"}}}`,
			`{"type":"object","$defs":{"a":{"oneOf":[{}]}},"properties":{"x":{"$ref":"#/$defs/a"}}}`,
			[]string{"oneOf at the top"},
		},
		"Anthropic wants draft 2020-12": {
			schema.ForAnthropic,
			`{"type":"object","properties":{"items":{"type":"array","items":[{"type":"string"},{"type":"array","items":[]}],"additionalItems":false},"d":{"default":{"items":[1]}}}}`,
			`{"type":"object","properties":{"items":{"type":"array","prefixItems":[{"type":"string"},{"type":"array"}],"items":false},"d":{"default":{"items":[1]}}}}`,
			nil,
		},
		"Anthropic takes no arguments of other names": {
			schema.ForAnthropic,
			`{"type":"object","properties":{"StartTime<":{},"StartTime":{},"o":{"properties":{"a<":{}}}},"required":["StartTime<","StartTime"]}`,
			`{"type":"object","properties":{"StartTime":{},"o":{"properties":{"a<":{}}}},"required":["StartTime"]}`,
			[]string{`argument "StartTime<", because of its name`},
		},
		"OpenAI wants what is in a list": {
			schema.ForOpenAI,
			`{"type":"object","properties":{"a":{"type":"array"},"b":{"type":["null","array"],"items":[{"type":"string"}],"additionalItems":{}},"c":{"anyOf":[{"type":"array","items":[]}]},"type":{"enum":["array"]}}}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{}},"b":{"type":["null","array"],"items":{"anyOf":[{"type":"string"}]}},"c":{"anyOf":[{"type":"array","items":{}}]},"type":{"enum":["array"]}}}`,
			nil,
		},
		"OpenAI wants properties": {schema.ForOpenAI, `{"type":"object","not":{}}`, `{"type":"object","properties":{}}`,
			[]string{"not at the top"}},
		"what is beside a reference goes first": {
			schema.ForGemini,
			`{"type":"object","properties":{"x":{"$ref":"#/definitions/a","description":"mine","maxLength":3}},"definitions":{"a":{"type":"string","description":"its","minLength":1}}}`,
			`{"type":"object","properties":{"x":{"type":"string","description":"mine","minLength":1,"maxLength":3}}}`, nil,
		},
		"a schema that refers to itself keeps the reference": {
			schema.ForGemini, `{"type":"object","properties":{"tree":{"$ref":"#/definitions/node"}},"definitions":{"node":{"type":"object","properties":{
				"name":{"$ref":"#/definitions/name"},"next":{"$ref":"#/definitions/node","description":"the next","title":"Next"}}},"name":{"type":"string"}}}`,
			`{"type":"object","properties":{"tree":{"type":"object","properties":{"name":{"type":"string"},"next":{"$ref":"#/$defs/node","description":"the next"}}}},
				"$defs":{"name":{"type":"string"},"node":{"type":"object","properties":{"name":{"$ref":"#/$defs/name"},"next":{"$ref":"#/$defs/node","description":"the next"}}}}}`, nil,
		},
		"a reference into a list, with an escape": {
			schema.ForGemini,
			`{"type":"object","properties":{"x":{"anyOf":[{"type":"string"}]},"y z":{"type":"null"},"a":{"$ref":"#/properties/x/anyOf/0"},"b":{"$ref":"#/properties/y%20z"}}}`,
			`{"type":"object","properties":{"x":{"anyOf":[{"type":"string"}]},"y z":{"type":"null"},"a":{"type":"string"},"b":{"type":"null"}}}`, nil,
		},
		"a reference that leads nowhere": {
			schema.ForGemini, `{"type":"object","properties":{"x":{"$ref":"https://example.com/x.json","description":"d"}}}`,
			`{"type":"object","properties":{"x":{"description":"d"}}}`,
			[]string{"the reference https://example.com/x.json, which leads nowhere"},
		},
		"what is referred to has a reference that is no text": {
			schema.ForGemini,
			`{"type":"object","properties":{"x":{"$ref":"#/$defs/a","description":"d"}},"$defs":{"a":{"$ref":{"type":"string"},"title":"t"}}}`,
			`{"type":"object","properties":{"x":{"$ref":{"type":"string"},"title":"t","description":"d"}}}`, nil,
		},
		"data and names are no keywords": {
			schema.ForGemini,
			`{"type":"object","properties":{"$ref":{"type":"string"},"definitions":{"const":{"$ref":"x"}},"e":{"enum":["a"],"default":{"$schema":"s"}},"~/":{"type":"null"},"r":{"$ref":"#/properties/~0~1"}}}`,
			`{"type":"object","properties":{"$ref":{"type":"string"},"definitions":{"const":{"$ref":"x"}},"e":{"enum":["a"],"default":{"$schema":"s"}},"~/":{"type":"null"},"r":{"type":"null"}}}`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := decode(t, c.given)
			got, left := c.fit(given)
			check.Equal(t, "the result", decode(t, c.want), got)
			check.Equal(t, "left out", c.left, left)
			check.Equal(t, "the given schema was changed", decode(t, c.given), given)
		})
	}
}

func TestReferencesDoNotBlowASchemaUp(t *testing.T) {
	var defs []string
	for i := range 40 {
		defs = append(defs,
			fmt.Sprintf(`"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1,
				i+1))
	}
	long := `"` + strings.Repeat("x", 30_000) + `"`
	for name, last := range map[string]string{"a type": `{"type":"string"}`, "a description": `{"description":` + long + `}`,
		"an enum": `{"enum":[` + long + `]}`} {
		given := decode(t, `{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{`+strings.Join(defs, ",")+
			`,"d40":`+last+`}}`)
		got, _ := schema.ForGemini(given)
		if raw, err := json.Marshal(got); err != nil || len(raw) > 4<<20 {
			t.Errorf("%s: %d bytes, %v", name, len(raw), err)
		}
	}
	// A shallow one, whose references are all to one long text.
	var properties []string
	for i := range 1500 {
		properties = append(properties, fmt.Sprintf(`"p%d":{"$ref":"#/$defs/long"}`, i))
	}
	got, _ := schema.ForGemini(decode(t, `{"type":"object","properties":{`+strings.Join(properties, ",")+`},"$defs":{"long":{"enum":[`+
		long+`]}}}`))
	if raw, err := json.Marshal(got); err != nil || len(raw) > 4<<20 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}

func TestStrictSchemasNameEverything(t *testing.T) {
	for text, want := range map[string]bool{
		`{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":["string","null"]}}}`:                      true,
		`{"type":"object","additionalProperties":false,"properties":{}}`:                                                                     true,
		`{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"enum":[1]}}}`: true,
		`{"type":"object","required":["a"],"properties":{"a":{}}}`:                                                                           false,
		`{"type":"object","additionalProperties":false,"properties":{"a":{}}}`:                                                               false,
		`{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":"object"}}}`:                               false,
		`{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"items":{"oneOf":[]}}}}`:                          false,
		`{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"anyOf":[{"type":"object"}]}}}`:                   false,
	} {
		check.Equal(t, text, want, schema.IsStrict(decode(t, text)))
	}
}
