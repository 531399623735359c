// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
)

func TestAListOfNamespacesIsReadOrRefused(t *testing.T) {
	for _, c := range []struct {
		text    string
		want    []string
		refused string
	}{
		{text: ""},
		{text: " "},
		{text: "team-a", want: []string{"team-a"}},
		{text: "team-b, team-a,team-b", want: []string{"team-a", "team-b"}},
		{text: "Team_A", refused: `"Team_A" is not the name of a namespace: a lowercase RFC 1123 label`},
		{text: "team-*", refused: `"team-*" is not the name of a namespace`},
		{text: "team-a/chats", refused: `"team-a/chats" is not the name of a namespace`},
		{text: "team-a,", refused: `"" is not the name of a namespace`}, // An empty name would be all namespaces.
		{text: ",", refused: `"" is not the name of a namespace`},
		{text: strings.Repeat("a", 64), refused: "must be no more than 63 characters"},
	} {
		got, err := ParseNamespaces(c.text)
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%q is refused with %v, want %s", c.text, err, c.refused)
			}
			continue
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q is %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

func TestShardsShareOutTheNamespacesOfAList(t *testing.T) {
	list := []string{"team-0", "team-1", "team-2", "team-3", "team-4", "team-5"}
	var all []string
	for i := range 3 {
		s := Scope{Shard{i, 3}, list}
		all = append(all, s.Own()...)
		together := append(s.Own(), s.Elsewhere()...)
		slices.Sort(together)
		if !slices.Equal(together, list) {
			t.Errorf("shard %d has %v, and others have %v", i, s.Own(), s.Elsewhere())
		}
	}
	slices.Sort(all)
	check.Equal(t, "three shards have", list, all)
	if one := (Scope{Namespaces: list}); !slices.Equal(one.Own(), list) || len(one.Elsewhere()) > 0 {
		t.Errorf("a single shard has %v, and others have %v", one.Own(), one.Elsewhere())
	}
}

func TestEachListOfNamespacesHasItsOwnLease(t *testing.T) {
	seen := map[string]Scope{}
	for _, s := range []Scope{
		{}, {Shard: Shard{1, 2}}, {Namespaces: []string{"a"}}, {Namespaces: []string{"b"}},
		{Namespaces: []string{"a", "b"}}, {Shard: Shard{1, 2}, Namespaces: []string{"a", "b"}},
	} {
		if other, taken := seen[s.Lease()]; taken {
			t.Errorf("%+v and %+v have the Lease %s", s, other, s.Lease())
		}
		seen[s.Lease()] = s
	}
	if (Scope{}).Lease() != (Shard{}).Lease() {
		t.Error("a manager without a list has another Lease than before")
	}
}
