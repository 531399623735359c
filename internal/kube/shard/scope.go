// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Scope says which namespaces a manager works for: those of its shard, within the namespaces that it is limited to. The
// zero value is all namespaces.
type Scope struct {
	// Shard is the part of the namespaces that the manager works for.
	Shard
	// Namespaces are those that the managers of all shards are limited to, sorted; empty: there is no limit.
	Namespaces []string
}

// ParseNamespaces reads a list of namespaces, separated by commas. The empty text is the empty list.
func ParseNamespaces(text string) ([]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var names []string
	var invalid []error
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
			invalid = append(invalid, fmt.Errorf("%q is not the name of a namespace: %s", name, strings.Join(wrong, "; ")))
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), errors.Join(invalid...)
}

// IsLimited reports whether the scope is limited to a list of namespaces.
func (s Scope) IsLimited() bool { return len(s.Namespaces) > 0 }

// Own are the namespaces of the list that are in the shard. They are empty if there is no list, too.
func (s Scope) Own() []string { return s.owned(true) }

// Elsewhere are the namespaces of the list that are in other shards. They are empty if there is no list, too.
func (s Scope) Elsewhere() []string { return s.owned(false) }

// Includes reports whether a namespace is in the scope.
func (s Scope) Includes(namespace string) bool {
	return s.Owns(namespace) && (!s.IsLimited() || slices.Contains(s.Namespaces, namespace))
}

func (s Scope) owned(own bool) (names []string) {
	for _, name := range s.Namespaces {
		if s.Owns(name) == own {
			names = append(names, name)
		}
	}
	return names
}

// Lease names the Lease that the managers of a scope elect their leader by. Managers of different lists have different
// Leases, so that they can run in the same namespace.
func (s Scope) Lease() string {
	if !s.IsLimited() {
		return s.Shard.Lease()
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.Join(s.Namespaces, ","))) // It never fails.
	return fmt.Sprintf("%016x.%s", h.Sum64(), s.Shard.Lease())
}
