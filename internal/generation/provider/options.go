// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
	"charm.land/fantasy/providers/google"
	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openaicompat"
	"charm.land/fantasy/providers/openrouter"
	"charm.land/fantasy/providers/vercel"

	"parley.dev/parley/api/v1alpha1"
)

// OptionError says which of spec.providerOptions cannot be used, and why. It quotes no value.
type OptionError struct {
	// Field is its path below spec.providerOptions; empty for the whole.
	Field string
	// Problem is what is wrong with it.
	Problem string
}

// Error implements error.
func (e *OptionError) Error() string {
	if e.Field == "" {
		return "spec.providerOptions " + e.Problem
	}
	return "spec.providerOptions." + e.Field + " " + e.Problem
}

// callOptions are the options of one call: spec.providerOptions, and the effort in the provider's own terms, which goes before
// what they say about the same. Each call needs options of its own, since fantasy changes them.
func callOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (fantasy.ProviderOptions, error) {
	make, ok := optionMakers[spec.Provider]
	if !ok || spec.ProviderOptions == nil && effort == "" {
		return nil, nil
	}
	if spec.Transport == v1alpha1.TransportResponses {
		make = responsesOptions
	}
	name, options, err := make(spec, effort)
	if err != nil {
		return nil, err
	}
	return fantasy.ProviderOptions{name: options}, nil
}

// optionMaker decodes the options and puts the effort into them. The name is the one under which fantasy looks them up.
type optionMaker func(*v1alpha1.ChatModelConfigSpec, v1alpha1.ReasoningEffort) (name string, options fantasy.ProviderOptionsData, err error)

var optionMakers = map[v1alpha1.ModelProvider]optionMaker{
	v1alpha1.ProviderOpenAI:           openAIOptions,
	v1alpha1.ProviderAzure:            openAIOptions,
	v1alpha1.ProviderAnthropic:        anthropicOptions,
	v1alpha1.ProviderBedrock:          anthropicOptions,
	v1alpha1.ProviderGoogle:           googleOptions,
	v1alpha1.ProviderOpenAICompatible: compatibleOptions,
	v1alpha1.ProviderOpenRouter:       openRouterOptions,
	v1alpha1.ProviderVercel:           vercelOptions,
}

func openAIOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (string, fantasy.ProviderOptionsData, error) {
	o := &openai.ProviderOptions{}
	if err := decodeOptions(spec, o); err != nil {
		return "", nil, err
	}
	return openai.Name, o, openAIEffort(&o.ReasoningEffort, effort)
}

func responsesOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (string, fantasy.ProviderOptionsData, error) {
	o := &openai.ResponsesProviderOptions{}
	if err := decodeOptions(spec, o); err != nil {
		return "", nil, err
	}
	if o.PreviousResponseID != nil {
		return "", nil, &OptionError{"previous_response_id", "cannot be set: each call sends the whole conversation"}
	}
	return openai.Name, o, openAIEffort(&o.ReasoningEffort, effort)
}

func compatibleOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (string, fantasy.ProviderOptionsData, error) {
	o := &openaicompat.ProviderOptions{}
	if err := decodeOptions(spec, o); err != nil {
		return "", nil, err
	}
	return openaicompat.Name, o, openAIEffort(&o.ReasoningEffort, effort)
}

func anthropicOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (string, fantasy.ProviderOptionsData, error) {
	o := &anthropic.ProviderOptions{}
	if err := decodeOptions(spec, o); err != nil {
		return "", nil, err
	}
	if o.Thinking != nil && o.Thinking.BudgetTokens <= 0 {
		return "", nil, &OptionError{"thinking.budget_tokens", "must be above 0"}
	}
	anthropicEffort(o, spec, effort)
	return anthropic.Name, o, nil
}

func googleOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (string, fantasy.ProviderOptionsData, error) {
	o := &google.ProviderOptions{}
	if err := decodeOptions(spec, o); err != nil {
		return "", nil, err
	}
	if t := o.ThinkingConfig; t != nil && t.ThinkingBudget != nil && t.ThinkingLevel != nil {
		return "", nil, &OptionError{"thinking_config", "may have thinking_budget or thinking_level, not both"}
	}
	googleEffort(o, spec.Model, effort)
	return google.Name, o, nil
}

func openRouterOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (string, fantasy.ProviderOptionsData, error) {
	o := &openrouter.ProviderOptions{}
	if err := decodeOptions(spec, o); err != nil {
		return "", nil, err
	}
	if effort != "" {
		if o.Reasoning == nil {
			o.Reasoning = &openrouter.ReasoningOptions{}
		}
		o.Reasoning.Enabled, o.Reasoning.MaxTokens, o.Reasoning.Effort = nil, nil, new(openrouter.ReasoningEffort(gatewayEffort(effort)))
	}
	return openrouter.Name, o, nil
}

func vercelOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (string, fantasy.ProviderOptionsData, error) {
	o := &vercel.ProviderOptions{}
	if err := decodeOptions(spec, o); err != nil {
		return "", nil, err
	}
	if o.BYOK != nil {
		return "", nil, &OptionError{"byok", "cannot be set: a ChatModelConfig is no place for keys"}
	}
	if effort != "" {
		if o.Reasoning == nil {
			o.Reasoning = &vercel.ReasoningOptions{}
		}
		o.Reasoning.Enabled, o.Reasoning.MaxTokens, o.Reasoning.Effort = nil, nil, new(vercel.ReasoningEffort(gatewayEffort(effort)))
	}
	return vercel.Name, o, nil
}

// decodeOptions decodes spec.providerOptions into fantasy's type, with every field in its place.
func decodeOptions[T any](spec *v1alpha1.ChatModelConfigSpec, o *T) error {
	if spec.ProviderOptions == nil || len(spec.ProviderOptions.Raw) == 0 {
		return nil
	}
	var given any
	if json.Unmarshal(spec.ProviderOptions.Raw, &given) != nil {
		return &OptionError{"", "is not JSON"}
	}
	if field := unknownField(given, reflect.TypeFor[T]()); field != "" {
		return &OptionError{field, "is not an option of provider " + string(spec.Provider) + ": see the list in the documentation of ChatModelConfig"}
	}
	err := json.Unmarshal(spec.ProviderOptions.Raw, o)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &OptionError{wrong.Field, "must be " + kindOf(wrong.Type)}
	}
	if err != nil {
		return &OptionError{"", "cannot be read"}
	}
	return nil
}

// unknownField is the path of the first field in order that the type does not have; empty if it has all.
func unknownField(given any, t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if list, ok := given.([]any); ok && t.Kind() == reflect.Slice {
		for i := range list {
			if below := unknownField(list[i], t.Elem()); below != "" {
				return below
			}
		}
	}
	fields, ok := given.(map[string]any)
	if !ok || t.Kind() != reflect.Struct {
		return "" // Nothing is unknown in a map, and that the type is another one is found when it is decoded.
	}
	known := map[string]reflect.Type{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		known[name] = t.Field(i).Type
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if known[name] == nil {
			return clip(name, 64)
		}
		if below := unknownField(fields[name], known[name]); below != "" {
			return name + "." + below
		}
	}
	return ""
}

// kindOf is what JSON calls a value of the type.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "a number"
	}
}
