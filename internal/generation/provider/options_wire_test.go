// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

// options are provider options in JSON. There is no field that the API does not know.
func options(text string) *v1beta1.ProviderOptions {
	var given v1beta1.ProviderOptions
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&given); err != nil {
		panic(err)
	}
	return &given
}

// members are the protocols of the members of v1beta1.ProviderOptions, each with a model that takes all of them.
var members = map[string]v1beta1.ChatModelConfigSpec{
	"openai": {Provider: v1beta1.ProviderOpenAI, Model: "gpt-4o"},
	"openaiResponses": {Provider: v1beta1.ProviderOpenAI, Transport: v1beta1.TransportResponses,
		Model: "gpt-5"},
	"azure": {Provider: v1beta1.ProviderAzure, Model: "gpt-4o", BaseURL: "https://mine.openai.azure.com"},
	"azureResponses": {Provider: v1beta1.ProviderAzure, Transport: v1beta1.TransportResponses, Model: "gpt-5",
		BaseURL: "https://mine.openai.azure.com"},
	"anthropic": {Provider: v1beta1.ProviderAnthropic, Model: "claude-sonnet-4-5"},
	"bedrock": {Provider: v1beta1.ProviderBedrock, Model: "anthropic.claude-sonnet-4-5-20250929-v1:0",
		Region: "eu-central-1"},
	"google": {Provider: v1beta1.ProviderGoogle, Model: "gemini-3-flash"},
	"openaiCompatible": {Provider: v1beta1.ProviderOpenAICompatible, Model: "qwen3",
		BaseURL: "https://models.example.com"},
	"openrouter": {Provider: v1beta1.ProviderOpenRouter, Model: "anthropic/claude-sonnet-4.5"},
	"vercel":     {Provider: v1beta1.ProviderVercel, Model: "openai/gpt-4o"},
}

// words are two values of each option that does not take any.
var words = map[string][2]string{
	"effort": {"low", "high"}, "reasoningEffort": {"low", "high"}, "thinkingDisplay": {"summarized", "omitted"},
}

// needs are options without which another one means nothing.
var needs = map[string]string{"thinkingDisplay": "thinking.budgetTokens"}

// leaf is one option at its path, with two values that it can have.
type leaf struct {
	path   []string
	values [2]string
}

func (l leaf) String() string { return strings.Join(l.path, ".") }

// other is the leaf with its other value first.
func (l leaf) other() leaf { return leaf{l.path, [2]string{l.values[1], l.values[0]}} }

// leaves are all that can be set in a type.
func leaves(of reflect.Type, path []string) (all []leaf) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	name := ""
	if len(path) > 0 {
		name = path[len(path)-1]
	}
	either := func(a, b string) []leaf { return []leaf{{path, [2]string{a, b}}} }
	switch pair, named := words[name]; {
	case name == "extraBody":
		return either(`{"anything":{"at":["all"]}}`, `{"anything":1.5}`)
	case named:
		return either(fmt.Sprintf("%q", pair[0]), fmt.Sprintf("%q", pair[1]))
	}
	switch of.Kind() {
	case reflect.Bool:
		return either("true", "false")
	case reflect.Int64:
		return either("3", "2000")
	case reflect.String:
		return either(`"one"`, `"two"`)
	case reflect.Slice:
		if of.Elem().Kind() == reflect.String {
			return either(`["one"]`, `["two"]`)
		}
		return leaves(of.Elem(), append(slices.Clone(path), "[]"))
	}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		all = append(all, leaves(field.Type, append(slices.Clone(path), name))...)
	}
	return all
}

// tree is the JSON in which each leaf has its first value.
func tree(all []leaf) string {
	below, order := map[string][]leaf{}, []string(nil)
	for _, l := range all {
		if len(l.path) == 0 {
			return l.values[0]
		}
		if below[l.path[0]] == nil {
			order = append(order, l.path[0])
		}
		below[l.path[0]] = append(below[l.path[0]], leaf{l.path[1:], l.values})
	}
	if slices.Equal(order, []string{"[]"}) {
		return "[" + tree(below["[]"]) + "]"
	}
	fields := make([]string, 0, len(order))
	for _, name := range order {
		fields = append(fields, fmt.Sprintf("%q:%s", name, tree(below[name])))
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// company are the leaves that must be set with one: the others of the same entry of a list, and what it needs.
func company(all []leaf, of leaf) (others []leaf) {
	entry, _, listed := strings.Cut(of.String(), "[]")
	for _, l := range all {
		if l.String() != of.String() && (listed && strings.HasPrefix(l.String(), entry+"[]") ||
			l.String() == needs[of.path[len(of.path)-1]]) {
			others = append(others, l)
		}
	}
	return others
}

// sent is the request of a call with the options of a member, in which a reply was thought about and tools are offered.
func sent(t *testing.T, member, given string) string {
	t.Helper()
	spec := members[member]
	spec.APIKey = &v1beta1.APIKeySource{}
	spec.ProviderOptions = options(fmt.Sprintf("{%q:%s}", member, given))
	var record recorder
	model, err := provider.New(&spec, providertest.Key, &http.Client{Transport: &record})
	check.OK(t, err)
	call := provider.Call(&spec, "")
	call.Prompt = fantasy.Prompt{
		fantasy.NewUserMessage("Hello?"),
		{Role: fantasy.MessageRoleAssistant, Content: []fantasy.MessagePart{
			fantasy.ReasoningPart{Text: "Hm.", ProviderOptions: (&wire.State{Signature: "s"}).With()},
			fantasy.TextPart{Text: "Yes."},
		}},
		fantasy.NewUserMessage("And now?"),
	}
	call.Tools = []fantasy.Tool{fantasy.FunctionTool{Name: "f", Description: "Does f.",
		InputSchema: map[string]any{"type": "object", "properties": map[string]any{}}}}
	stream, err := model.Stream(t.Context(), call)
	check.OK(t, err)
	for range stream {
	}
	return record.text.String()
}

func TestEveryOptionReachesTheWire(t *testing.T) {
	for field := range reflect.TypeFor[v1beta1.ProviderOptions]().Fields() {
		member, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		all := leaves(field.Type, nil)
		for _, l := range all {
			t.Run(member+"."+l.String(), func(t *testing.T) {
				others := company(all, l)
				one, other := sent(t, member, tree(append(others, l))), sent(t, member, tree(append(others, l.other())))
				if one == other {
					t.Errorf("%s and %s make the same request: %s", l.values[0], l.values[1], one)
				}
			})
		}
	}
}
