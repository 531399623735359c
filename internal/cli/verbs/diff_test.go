// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley.dev/parley/api/changes"
	"parley.dev/parley/test/kit/check"
)

func TestChangesAreShownListedAndPatched(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	found := changes.Changes{Notes: []string{"More."}, Repositories: []changes.Repository{{Path: "app", Branch: "main",
		Upstream: "origin/main", Base: "0123456789abcdef", Commits: []changes.Commit{{ID: "0a", Subject: "Fix\x1b[2J"}},
		Omitted: 2, Files: []changes.File{
			{Path: "a.go", Status: changes.Modified, Added: 1, Removed: 2, Diff: "--- a/a.go\n+++ b/a.go\n-\x1b[31mold\n"},
			{Path: "logo.png", Status: changes.Added, Binary: true}}}},
		Files: []changes.File{{Path: "application/n", Status: changes.Added, Note: "it is large"}}}
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, strings.TrimPrefix(r.URL.RequestURI(), "/v1beta1/namespaces/"+p.namespace+"/chats/"))
		if strings.HasSuffix(r.URL.Path, ".patch") {
			_, _ = w.Write([]byte("Not in this patch: x\n\xff\x1b")) // Otherwise the test fails.
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(found) // The same.
	}))
	t.Cleanup(server.Close)
	run := func(args ...string) *command {
		return p.run(append([]string{"diff", "triage", "--gateway", server.URL}, args...)...)
	}
	run().shows("▎app main...origin/main: 1 commit since 0123456789ab\n▎  0a Fix\\u001b[2J\n--- a/a.go\n+++ b/a.go\n"+
		"-\\u001b[31mold\n▎added app/logo.png: it is binary\n▎added application/n: it is large\n",
		"2 changed files more", "More.")
	run("--name-only").shows("app/a.go\napp/logo.png\napplication/n\n")
	run("--name-only", "app").shows("app/a.go\napp/logo.png\n")
	run("--stat", "app/a.go").shows("STATUS     LINES   FILE\nmodified   +1 -2   app/a.go\n")
	run("-o", "json").succeeds()
	run("--patch", "./app/").shows("Not in this patch: x\n\xff\x1b", "its first lines say what is missing")
	run("--patch", "a", "b").exits(exitUsage, "one path at most")
	run("--stat", "--patch").exits(exitUsage, "exclude each other")
	check.Equal(t, "last request", "triage/changes.patch?repository=app", asked[len(asked)-1])
}
