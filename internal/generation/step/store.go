// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1alpha1"
)

// withoutStore are the provider's options without the one that keeps replies at the provider, also among the fields
// that go into the request as they are: nothing refers to an advice.
func withoutStore(given *v1alpha1.ProviderOptions) *v1alpha1.ProviderOptions {
	if given == nil {
		return nil
	}
	options := given.DeepCopy()
	for _, chat := range []*v1alpha1.OpenAIOptions{options.OpenAI, options.Azure} {
		if chat != nil {
			chat.Store = nil
		}
	}
	for _, responses := range []*v1alpha1.OpenAIResponsesOptions{options.OpenAIResponses, options.AzureResponses} {
		if responses != nil {
			responses.Store = nil
		}
	}
	for _, body := range bodies(options) {
		body.Raw = without(body.Raw, "store")
	}
	return options
}

// bodies are what goes into the request as it is.
func bodies(options *v1alpha1.ProviderOptions) []*runtime.RawExtension {
	var all []*runtime.RawExtension
	for _, claude := range []*v1alpha1.AnthropicOptions{options.Anthropic, options.Bedrock} {
		if claude != nil {
			all = append(all, claude.ExtraBody)
		}
	}
	if options.OpenAICompatible != nil {
		all = append(all, options.OpenAICompatible.ExtraBody)
	}
	if options.OpenRouter != nil {
		all = append(all, options.OpenRouter.ExtraBody)
	}
	if options.Vercel != nil {
		all = append(all, options.Vercel.ExtraBody)
	}
	return slices.DeleteFunc(all, func(body *runtime.RawExtension) bool { return body == nil })
}

// without is a JSON object without that member.
func without(object []byte, name string) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return object
	}
	delete(members, name)
	raw, err := json.Marshal(members)
	if err != nil {
		return object
	}
	return raw
}
