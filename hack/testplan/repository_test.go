// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
)

// parley is this repository, loaded once.
var parley = sync.OnceValues(func() (repository, error) { return load(context.Background(), "../..", modules) })

func loadParley(t *testing.T) repository {
	t.Helper()
	r, err := parley()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestListsOfTheRepository(t *testing.T) {
	g := loadParley(t).packages
	for list, want := range map[string][]string{
		"unit-race": {"controllers/chat", "internal/pods/capacity", "internal/gateway/auth", "internal/stream/relay",
			"hack/testplan", "test/soak"},
		"unit-plain":  {"api/v1beta1", "internal/chat/cost", "internal/chat/fence", "internal/approval/toolpolicy"},
		"cluster":     {"hack/localcluster/internal/image", "hack/localcluster/internal/storage"},
		"integration": {"internal/gateway", "internal/cli/verbs", "test/admission", "test/columns", "test/integration"},
		"crash": {"test/crash", "test/load", "test/memory", "test/model", "test/model/reference", "test/outage",
			"test/shard"},
	} {
		for _, dir := range want {
			p := g["parley.dev/parley/"+dir]
			if !p.HasTests || !lists[list](g, p) {
				t.Errorf("%s is missing in the list %s", dir, list)
			}
		}
	}
}

func TestEveryTestedPackageHasOneList(t *testing.T) {
	g := loadParley(t).packages
	for _, p := range g.tested() {
		found := 0
		for _, isListed := range lists {
			if isListed(g, p) {
				found++
			}
		}
		want := 1
		if slices.Contains([]string{page, gitops, dashboards, signIn, endToEnd}, g.targetOf(p)) {
			want = 0
		}
		if found != want {
			t.Errorf("%s of %s is in %d lists, want %d", p.Dir, g.targetOf(p), found, want)
		}
	}
}

func TestEveryRuleNamesAPath(t *testing.T) {
	for _, rule := range rules {
		if existing("../..", "", rule.path) == nil {
			t.Errorf("the rule for %s names nothing: remove it", rule.path)
		}
	}
}

func TestPrintedLists(t *testing.T) {
	r := loadParley(t)
	for name, c := range map[string]struct {
		args      string
		want, err string
	}{
		"by folder":       {"unit-plain ./internal/chat/cost/ internal/pods/capacity", "parley.dev/parley/internal/chat/cost\n", ""},
		"by path":         {"unit-race parley.dev/parley/internal/pods/capacity", "parley.dev/parley/internal/pods/capacity\n", ""},
		"reasons":         {"reasons internal/chat/cost", "test-unit         internal/chat/cost", ""},
		"unknown package": {"unit-race internal/nothing", "", `no package "internal/nothing" with tests`},
		"unknown list":    {"nothing", "", "name one of cluster, crash, integration, unit-plain, unit-race, reasons"},
		"no list":         {"", "", "the first argument is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := r.execute(t.Context(), strings.Fields(c.args), &out, io.Discard)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("got error %v, want %q", err, c.err)
			}
			if !strings.HasPrefix(out.String(), c.want) {
				t.Errorf("got %q, want %q", out.String(), c.want)
			}
		})
	}
}
