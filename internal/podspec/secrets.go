// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"

	"parley.dev/parley/api/v1alpha1"
)

// maxServerSecrets is how many Secrets generation pods mount for the MCP servers of chats: 64. Whoever may write chats
// must not be able to make the pods of a namespace so large that none can be created.
const maxServerSecrets = 64

// KeysOfServers collects the keys of Secrets that chats name for their MCP servers and that can be mounted. Where these
// are of too many Secrets, those count that the oldest chats name.
func KeysOfServers(chats []v1alpha1.Chat) []v1alpha1.SecretKeyReference {
	chats = slices.Clone(chats)
	slices.SortFunc(chats, func(a, b v1alpha1.Chat) int {
		if byAge := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); byAge != 0 {
			return byAge
		}
		return strings.Compare(a.Name, b.Name)
	})
	secrets, keys := map[string]bool{}, []v1alpha1.SecretKeyReference(nil)
	for i := range chats {
		for _, server := range chats[i].Spec.MCPServers {
			for _, header := range server.HeadersFrom {
				key := header.SecretKeyRef
				if !mountable(key) || !secrets[key.Name] && len(secrets) == maxServerSecrets {
					continue
				}
				secrets[key.Name] = true
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// JoinKeys are all of the keys, sorted and without repetition.
func JoinKeys(all ...[]v1alpha1.SecretKeyReference) []v1alpha1.SecretKeyReference {
	keys := slices.Concat(all...)
	slices.SortFunc(keys, func(a, b v1alpha1.SecretKeyReference) int {
		return strings.Compare(a.Name+"/"+a.Key, b.Name+"/"+b.Key)
	})
	return slices.Compact(keys)
}
