// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/test/kit/check"
)

// providers are what a ChatModelConfig of each member of providerOptions says besides.
var providers = map[string]map[string]any{
	"openai":           {"provider": "openai"},
	"openaiResponses":  {"provider": "openai", "transport": "Responses"},
	"azure":            {"provider": "azure", "baseURL": "https://mine.openai.azure.com"},
	"azureResponses":   {"provider": "azure", "baseURL": "https://mine.openai.azure.com", "transport": "Responses"},
	"anthropic":        {"provider": "anthropic"},
	"bedrock":          {"provider": "bedrock", "region": "eu-central-1"},
	"google":           {"provider": "google"},
	"openaiCompatible": {"provider": "openai-compatible", "baseURL": "http://model.invalid:1/v1"},
	"openrouter":       {"provider": "openrouter"},
	"vercel":           {"provider": "vercel"},
}

// optioned is a ChatModelConfig of the member's provider with those options, as kubectl sends it.
func optioned(t *testing.T, ns, of, options string) *unstructured.Unstructured {
	t.Helper()
	var given any
	check.OK(t, json.Unmarshal([]byte(options), &given))
	spec := map[string]any{"model": "m", "providerOptions": given,
		"apiKey": map[string]any{"secretKeyRef": map[string]any{"name": "keys", "key": "k"}}}
	maps.Copy(spec, providers[of])
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "parley.dev/v1beta1", "kind": "ChatModelConfig",
		"metadata": map[string]any{"namespace": ns, "generateName": "m-"}, "spec": spec,
	}}
}

func TestOptionsThatCannotBeUsedAreRefused(t *testing.T) {
	ns := parallelBare(t)
	for of, refused := range map[string]map[string]string{
		"openai": {
			`["a"]`:                          "spec.providerOptions: Invalid value",
			`{"openai":{"usr":"x"}}`:         `unknown field "spec.providerOptions.openai.usr"`,
			`{"openai":{"store":"yes"}}`:     "spec.providerOptions.openai.store: Invalid value",
			`{"openai":{"topLogProbs":1.5}}`: "spec.providerOptions.openai.topLogProbs: Invalid value",
			`{"openai":{"logitBias":[{"token":5,"bias":"x"}]}}`:                    "spec.providerOptions.openai.logitBias[0].bias: Invalid value",
			`{"openai":{"logitBias":[{"token":5,"bias":1},{"token":5,"bias":2}]}}`: "spec.providerOptions.openai.logitBias[1]: Duplicate value",
			`{"openai":{"metadata":[{"name":"team","value":5}]}}`:                  "spec.providerOptions.openai.metadata[0].value: Invalid value",
			`{"openai":{"reasoningEffort":"enormous"}}`:                            `supported values: "none", "minimal", "low", "medium", "high", "xhigh", "max"`,
			`{"anthropic":{}}`:          "belong into providerOptions.openai, and into no other member",
			`{"openai":{},"vercel":{}}`: "belong into providerOptions.openai, and into no other member",
			`{"openaiResponses":{}}`:    "belong into providerOptions.openai, and into no other member",
		},
		"openaiResponses": {
			`{"openaiResponses":{"previousResponseID":"r"}}`: `unknown field "spec.providerOptions.openaiResponses.previousResponseID"`,
			`{"openaiResponses":{"include":"x"}}`:            "spec.providerOptions.openaiResponses.include: Invalid value",
			`{"openaiResponses":{"include":["x",5]}}`:        "spec.providerOptions.openaiResponses.include[1]: Invalid value",
			`{"openai":{}}`: "belong into providerOptions.openaiResponses, and into no other member",
		},
		"azure":          {`{"openai":{}}`: "belong into providerOptions.azure, and into no other member"},
		"azureResponses": {`{"azure":{}}`: "belong into providerOptions.azureResponses, and into no other member"},
		"anthropic": {
			`{"anthropic":{"thinking":{"budget":1}}}`: `unknown field "spec.providerOptions.anthropic.thinking.budget"`,
			`{"anthropic":{"thinking":{"budgetTokens":"lots"}}}`: "spec.providerOptions.anthropic.thinking.budgetTokens: " +
				"Invalid value",
			`{"anthropic":{"thinking":{"budgetTokens":0}}}`: "should be greater than or equal to 1",
			`{"anthropic":{"thinking":5}}`:                  "spec.providerOptions.anthropic.thinking: Invalid value",
			`{"anthropic":{"effort":"none"}}`:               `supported values: "low", "medium", "high", "xhigh", "max"`,
			`{"anthropic":{"thinkingDisplay":"no"}}`:        `supported values: "summarized", "omitted"`,
			`{"anthropic":{"extraBody":["a"]}}`:             "spec.providerOptions.anthropic.extraBody: Invalid value",
		},
		"bedrock": {`{"bedrock":{"thinking":{}}}`: "spec.providerOptions.bedrock.thinking.budgetTokens: Required value"},
		"google": {
			`{"google":{"thinkingConfig":{"thinkingBudget":1,"thinkingLevel":"LOW"}}}`: "thinkingConfig may have " +
				"thinkingBudget or thinkingLevel, not both",
			`{"google":{"safetySettings":[{"category":"a","treshold":"b"}]}}`: `unknown field "spec.providerOptions.google.safetySettings[0].treshold"`,
		},
		"openrouter": {
			`{"openrouter":{"provider":{"sort":1}}}`:        "spec.providerOptions.openrouter.provider.sort: Invalid value",
			`{"openrouter":{"reasoning":{"effort":"max"}}}`: `supported values: "none", "minimal", "low", "medium", "high", "xhigh"`,
		},
		"vercel":           {`{"vercel":{"byok":{}}}`: `unknown field "spec.providerOptions.vercel.byok"`},
		"openaiCompatible": {`{"openai":{}}`: "belong into providerOptions.openaiCompatible, and into no other member"},
	} {
		for options, want := range refused {
			t.Run(of+options, func(t *testing.T) {
				err := cluster.Client.Create(t.Context(), optioned(t, ns, of, options),
					client.FieldValidation(metav1.FieldValidationStrict))
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %.900v", want, err)
				}
			})
		}
	}
}

func TestOptionsOfTheProviderAreTaken(t *testing.T) {
	ns := parallelBare(t)
	for of, options := range map[string]string{
		"openai": `{"openai":{"store":true,"logitBias":[{"token":5,"bias":-100}],"prediction":{"content":"x"},
			"metadata":[{"name":"team","value":"blue"}],"reasoningEffort":"none","topLogProbs":5}}`,
		"openaiResponses":  `{"openaiResponses":{"include":["reasoning.encrypted_content"],"topLogProbs":20}}`,
		"azure":            `{"azure":{"maxCompletionTokens":5000}}`,
		"azureResponses":   `{"azureResponses":{"maxToolCalls":3}}`,
		"anthropic":        `{"anthropic":{"thinking":{"budgetTokens":1024},"effort":"max","extraBody":{"a":[1.5,null]}}}`,
		"bedrock":          `{"bedrock":{"thinkingDisplay":"omitted","sendReasoning":false}}`,
		"google":           `{"google":{"thinkingConfig":{"thinkingBudget":0},"safetySettings":[]}}`,
		"openaiCompatible": `{"openaiCompatible":{"extraBody":{"anything":{"at":["all",1.5,null]}}}}`,
		"openrouter":       `{"openrouter":{"provider":{"order":["a"],"allowFallbacks":false},"reasoning":{"effort":"xhigh"}}}`,
		"vercel":           `{"vercel":{"gateway":{"models":["a"],"zeroDataRetention":true}}}`,
	} {
		t.Run(of, func(t *testing.T) {
			if err := cluster.Client.Create(t.Context(), optioned(t, ns, of, options),
				client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUnknownProviderOptionIsNeverStored(t *testing.T) {
	ns := parallelBare(t)
	const unknown = `{"openai":{"usr":"x","user":"u"}}`
	lax := optioned(t, ns, "openai", unknown)
	check.OK(t, cluster.Client.Create(t.Context(), lax, client.FieldValidation(metav1.FieldValidationIgnore)))
	got, _, _ := unstructured.NestedMap(lax.Object, "spec", "providerOptions", "openai")
	if _, there := got["usr"]; there || got["user"] != "u" {
		t.Errorf("a client that is not strict has stored %v", got)
	}
	applied := optioned(t, ns, "openai", unknown)
	applied.SetName("applied")
	applied.SetGenerateName("")
	err := cluster.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("me"))
	if err == nil || !strings.Contains(err.Error(), "providerOptions.openai.usr: field not declared in schema") {
		t.Errorf("applied on the server's side: %v", err)
	}
}
