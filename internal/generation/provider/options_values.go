// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1alpha1"
)

// said is what an option says, nil for one that says nothing.
func said[T ~string](option T) *T {
	if option == "" {
		return nil
	}
	return &option
}

func biasOf(given []v1alpha1.LogitBias) map[string]int64 {
	if given == nil {
		return nil
	}
	bias := make(map[string]int64, len(given))
	for _, b := range given {
		bias[strconv.FormatInt(b.Token, 10)] = b.Bias
	}
	return bias
}

func metadataOf(given []v1alpha1.MetadataEntry) map[string]any {
	if given == nil {
		return nil
	}
	metadata := make(map[string]any, len(given))
	for _, m := range given {
		metadata[m.Name] = m.Value
	}
	return metadata
}

// bodyOf are fields that go into the request as they are. The API server has made sure that they are an object.
func bodyOf(given *runtime.RawExtension) (body map[string]any) {
	if given == nil || json.Unmarshal(given.Raw, &body) != nil {
		return nil
	}
	return body
}

// gatewayReasoning is how much a model behind a gateway is to think; nil if nobody says. An effort takes the place of
// what else says so.
func gatewayReasoning(given *v1alpha1.GatewayReasoning, effort v1alpha1.ReasoningEffort) *v1alpha1.GatewayReasoning {
	if effort == "" {
		return given
	}
	reasoning := &v1alpha1.GatewayReasoning{Effort: gatewayEffort(effort)}
	if given != nil {
		reasoning.Exclude = given.Exclude
	}
	return reasoning
}
