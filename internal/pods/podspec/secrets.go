// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"iter"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"parley.dev/parley/api/v1beta1"
)

// mountable reports whether the key can be mounted: both names are such as the API server takes for a volume. One that
// it refuses would keep every pod of the namespace from being created,
// and one that is a path would keep them from starting.
func mountable(key v1beta1.SecretKeyReference) bool {
	return len(validation.IsDNS1123Subdomain(key.Name)) == 0 && len(validation.IsConfigMapKey(key.Key)) == 0
}

// KeysOf collects the keys of Secrets that the ChatModelConfigs name and that can be mounted, sorted and without
// repetition: API keys, CA bundles, and credentials of proxies.
func KeysOf(configs []v1beta1.ChatModelConfig) []v1beta1.SecretKeyReference {
	var keys []v1beta1.SecretKeyReference
	for i := range configs {
		for _, key := range configs[i].Spec.Secrets() {
			if mountable(key) {
				keys = append(keys, key)
			}
		}
	}
	return JoinKeys(keys)
}

// maxServerSecrets is how many Secrets generation pods mount for the MCP servers of chats: 64. Whoever may write chats
// must not be able to make the pods of a namespace so large that none can be created.
const maxServerSecrets = 64

// KeysOfServers collects the keys of Secrets that ChatClasses and chats name for their MCP servers and that can be
// mounted. Where these are of too many Secrets, those count that classes name, and then those of the oldest chats.
func KeysOfServers(classes []v1beta1.ChatClass, chats []v1beta1.Chat) []v1beta1.SecretKeyReference {
	collected := serverKeys{secrets: map[string]bool{}}
	for i := range byAge(classes, func(c *v1beta1.ChatClass) *metav1.ObjectMeta { return &c.ObjectMeta }) {
		collected.add(classes[i].Spec.Defaults.MCPServers)
	}
	for i := range byAge(chats, func(c *v1beta1.Chat) *metav1.ObjectMeta { return &c.ObjectMeta }) {
		collected.add(chats[i].Spec.MCPServers)
	}
	return collected.keys
}

// serverKeys are the keys that have been collected, and their Secrets.
type serverKeys struct {
	secrets map[string]bool
	keys    []v1beta1.SecretKeyReference
}

func (k *serverKeys) add(servers []v1beta1.MCPServer) {
	for _, server := range servers {
		for _, header := range server.HeadersFrom {
			key := header.SecretKeyRef
			if !mountable(key) || !k.secrets[key.Name] && len(k.secrets) == maxServerSecrets {
				continue
			}
			k.secrets[key.Name] = true
			k.keys = append(k.keys, key)
		}
	}
}

// byAge are the places of the objects, the oldest first.
func byAge[T any](objects []T, meta func(*T) *metav1.ObjectMeta) iter.Seq[int] {
	places := make([]int, len(objects))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(i, j int) int {
		a, b := meta(&objects[i]), meta(&objects[j])
		if older := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); older != 0 {
			return older
		}
		return strings.Compare(a.Name, b.Name)
	})
	return slices.Values(places)
}

// JoinKeys are all of the keys, sorted and without repetition.
func JoinKeys(all ...[]v1beta1.SecretKeyReference) []v1beta1.SecretKeyReference {
	keys := slices.Concat(all...)
	slices.SortFunc(keys, func(a, b v1beta1.SecretKeyReference) int {
		return strings.Compare(a.Name+"/"+a.Key, b.Name+"/"+b.Key)
	})
	return slices.Compact(keys)
}
