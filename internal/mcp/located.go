// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"parley.dev/parley/api/v1alpha1"
)

// located is the entry with the address that it refers to, as the attempt was told. What was told of another reference
// than the entry has by now is not its address: its headers would go there.
func located(entry *v1alpha1.MCPServer, told []v1alpha1.MCPServerAddress) (*v1alpha1.MCPServer, *failure) {
	if entry.ServerRef == nil {
		return entry, nil
	}
	i := slices.IndexFunc(told, func(a v1alpha1.MCPServerAddress) bool {
		return a.Name == entry.Name && equality.Semantic.DeepEqual(a.Ref, *entry.ServerRef)
	})
	switch {
	case i < 0:
		return entry, &failure{reason: v1alpha1.MCPNotReady, words: "its address is looked up before the next step"}
	case told[i].URL == "":
		return entry, &failure{reason: told[i].Reason, words: told[i].Message}
	}
	found := entry.DeepCopy()
	found.URL = told[i].URL
	if found.Transport == "" {
		found.Transport = told[i].Transport
	}
	return found, nil
}
