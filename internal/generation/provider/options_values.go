// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"

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
