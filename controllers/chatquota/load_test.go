// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatquota

import (
	"testing"

	"parley.dev/parley/internal/pods/capacity"
	"parley.dev/parley/test/kit/check"
)

func TestLoadSetsGateLimitsOfAllNamespaces(t *testing.T) {
	_, r := begin(t, clusterQuota(0), quota("a", "large", 5), quota("b", "b", 1), quota("a", "none", 0))
	check.OK(t, r.Load(t.Context()))
	for ns, want := range map[string]capacity.Held{
		"a": {Limit: capacity.Limit{Quota: "none"}, Namespace: "a"},
		"b": {},
		"c": {Limit: capacity.Limit{Quota: "default"}, Scope: capacity.EachNamespace, Namespace: "c"},
	} {
		if got := held(r, ns); got != want {
			t.Errorf("a chat in %s is held by %+v, want %+v", ns, got, want)
		}
	}
}
