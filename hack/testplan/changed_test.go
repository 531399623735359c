// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// selected are the targets and the folders of packages that a change of the files selects.
func selected(t *testing.T, r repository, files ...string) (targets, dirs []string) {
	t.Helper()
	s := r.affected(files, nil)
	if s.unknown != "" {
		t.Fatalf("%s is unknown", s.unknown)
	}
	for path := range s.packages {
		dirs = append(dirs, r.packages[path].Dir)
	}
	return slices.Sorted(maps.Keys(s.targets)), dirs
}

// TestChangedFiles changes one file of each kind. For packages it shows some that run and some that do not.
func TestChangedFiles(t *testing.T) {
	r := loadParley(t)
	for file, c := range map[string]struct{ targets, runs, not string }{
		"internal/chat/plan/report.go": {"lint soak-short test-crash test-e2e test-gitops test-integration test-unit verify",
			"internal/chat/plan controllers/chat test/integration test/crash test/layers test/style",
			"internal/chat/cost test/page"},
		"internal/chat/plan/action_test.go": {"lint test-unit verify", "internal/chat/plan test/style", "controllers/chat"},
		"internal/gateway/rest/chats.go": {"lint soak-short test-crash test-e2e test-integration test-page test-signin test-unit verify",
			"internal/gateway test/gateway", "controllers/chat"},
		"cmd/gateway/main.go": {"lint soak-short test-e2e test-integration test-page test-unit verify",
			"test/gateway test/doctor", "test/page"},
		"test/gitops/health_test.go": {"lint test-gitops test-unit verify", "test/gitops", "test/dashboards"},
		"test/gitops/go.work":        {"lint test-gitops test-unit verify", "test/gitops", "test/dashboards"},
		"config/admission/classes.yaml": {"soak-short test-crash test-dashboards test-e2e test-gitops " +
			"test-integration test-unit", "test/admission test/dashboards test/shard test/doctor", "internal/gateway"},
		"config/crd/bases/parley.dev_chats.yaml": {"soak-short test-crash test-dashboards test-e2e test-gitops " +
			"test-integration test-page test-signin test-unit verify", "api/v1beta1 test/integration", "controllers/chat"},
		"config/rbac/users.yaml": {"soak-short test-crash test-dashboards test-e2e test-gitops " +
			"test-integration test-page test-signin test-unit",
			"test/gateway internal/gateway/rest test/doctor", "internal/chat/plan"},
		"config/gitops/argocd-health.yaml": {"test-dashboards test-gitops test-integration test-unit",
			"test/dashboards test/gitops", "test/crash"},
		"config/grafana/parley.json": {"test-dashboards test-integration test-unit verify",
			"test/dashboards", ""},
		"config/prometheus/rules.yaml":           {"test-dashboards test-integration test-unit", "test/dashboards", ""},
		"config/kube-state-metrics/metrics.yaml": {"test-dashboards test-integration test-unit", "test/dashboards", ""},
		"config/samples/skills.yaml":             {"test-e2e test-integration test-unit", "test/integration", "test/page"},
		"config/samples/chat.yaml": {"soak-short test-e2e test-integration test-unit",
			"test/integration test/e2e", ""},
		"config/mcp/services/rights.yaml":   {"test-e2e test-integration test-unit", "test/admission test/e2e", ""},
		"config/tracing/kustomization.yaml": {"test-crash test-integration test-unit", "test/shard", "test/crash"},
		"docs/reference/errors.md": {"test-integration test-unit verify",
			"api/v1beta1 internal/generation/provider/fault test/integration", "internal/telemetry"},
		"docs/reference/status.md":            {"test-integration test-unit verify", "test/integration", ""},
		"docs/reference/gateway-openapi.json": {"test-integration test-unit verify", "internal/gateway/rest", "internal/gateway"},
		"docs/screenshots/page-light.png":     {"test-integration test-unit", "test/integration", "internal/gateway"},
		"README.md":                           {"test-unit", "test/style", "internal/gateway"},
		"LICENSE":                             {"", "", ""},
		"internal/gateway/page/ui/js/api.js": {"soak-short test-e2e test-integration test-page test-signin test-unit verify",
			"test/page internal/gateway/page", "controllers/chat"},
		"internal/pods/podspec/testdata/generation.yaml": {"test-unit", "internal/pods/podspec", "controllers/generationpod"},
		"hack/localcluster/internal/image/image.go": {"lint soak-short test-e2e test-unit verify",
			"hack/localcluster/internal/image", "internal/chat/plan"},
		"hack/localcluster/internal/component/templates/kubelet.yaml": {"soak-short test-e2e test-unit",
			"hack/localcluster/internal/component", "hack/localcluster/internal/image"},
		"hack/localcluster/go.mod": {"lint soak-short test-e2e test-unit verify", "hack/localcluster/internal/image",
			"internal/chat/plan"},
		"hack/localcluster/build.sh": {"soak-short test-crash test-dashboards test-e2e test-gitops " +
			"test-integration test-page test-signin", "test/integration test/crash", "internal/chat/plan"},
		"hack/deploy.sh":                   {"soak-short test-e2e", "test/e2e", "internal/chat/plan"},
		"hack/axe/package.json":            {"test-e2e test-page", "test/page", ""},
		"hack/grafana/dashboard.ts":        {"test-dashboards", "test/dashboards", ""},
		"hack/mcp-everything/package.json": {"test-e2e", "test/e2e", ""},
		"hack/model-clients/ai.mjs":        {"test-e2e", "test/e2e", ""},
		"hack/agent-sandbox/go.mod":        {"test-e2e test-unit verify", "test/e2e hack/versions", ""},
		"test/archive/go.mod":              {"test-archive test-unit verify", "hack/versions", ""},
		"hack/tools/go.mod":                {"lint test-unit verify", "hack/versions", ""},
		"hack/verify.sh":                   {"verify", "", ""},
		"hack/demo.sh":                     {"", "", ""},
		".golangci.yml":                    {"lint", "", ""},
		"Dockerfile":                       {"test-unit", "test/layers", "internal/gateway"},
		"plugins/headlamp/package.json":    {"headlamp", "", ""},
	} {
		t.Run(strings.ReplaceAll(file, "/", "_"), func(t *testing.T) {
			targets, dirs := selected(t, r, file)
			if diff := cmp.Diff(c.targets, strings.Join(targets, " ")); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
			for dir := range strings.FieldsSeq(c.runs) {
				if !slices.Contains(dirs, dir) {
					t.Errorf("%s does not run, only %v", dir, dirs)
				}
			}
			for dir := range strings.FieldsSeq(c.not) {
				if slices.Contains(dirs, dir) {
					t.Errorf("%s runs", dir)
				}
			}
		})
	}
}

func TestBuildFilesSelectEverything(t *testing.T) {
	r := loadParley(t)
	for _, file := range []string{"Makefile", "go.mod", "go.sum", "hack/go.mk", "hack/cluster.mk"} {
		if got := r.affected([]string{file}, nil).arguments(len(r.packages.tested())); !slices.Equal(got, makeTest) {
			t.Errorf("%s selects %v", file, got)
		}
	}
}

func TestUnknownFilesSelectEverything(t *testing.T) {
	r := loadParley(t)
	for name, c := range map[string]struct{ file, deleted, unknown string }{
		"file without rule":       {"strange.txt", "", "strange.txt"},
		"Go file without package": {"internal/strange/a.go", "", "internal/strange/a.go"},
		"deleted Go file":         {"", "internal/chat/cost/gone.go", ""},
		"deleted test data":       {"", "internal/pods/podspec/testdata/gone.yaml", ""},
		"deleted page of docs":    {"", "docs/gone.md", "docs/gone.md"},
	} {
		t.Run(name, func(t *testing.T) {
			s := r.affected(strings.Fields(c.file), strings.Fields(c.deleted))
			if s.unknown != c.unknown {
				t.Errorf("got %q, want %q", s.unknown, c.unknown)
			}
			var explanation bytes.Buffer
			explain(&explanation, r.packages, s)
			if c.unknown != "" && (!slices.Equal(s.arguments(0), makeTest) ||
				!strings.Contains(explanation.String(), "everything: it is not known what uses "+c.unknown)) {
				t.Errorf("got %v\n%s", s.arguments(0), explanation.String())
			}
		})
	}
}

func TestRuleKeepsAllPackagesOfItsTarget(t *testing.T) {
	r := loadParley(t)
	_, dirs := selected(t, r, "hack/localcluster/build.sh", "internal/chat/cost/cost_test.go")
	for _, dir := range []string{"internal/chat/cost", "test/integration", "test/columns", "test/model/reference"} {
		if !slices.Contains(dirs, dir) {
			t.Errorf("%s does not run", dir)
		}
	}
}

func TestChangedFilesOfGit(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	inGit := func(args ...string) {
		t.Helper()
		if _, err := git(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(message string) {
		t.Helper()
		inGit("add", "-A")
		inGit("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", message)
	}
	inGit("init", "-q")
	write(t, dir, map[string]string{".gitignore": "ignored\n", "same": "a", "gone": "a", "edited": "a",
		"moved": "the text of a file"})
	commit("first")
	inGit("mv", "moved", "new name")
	inGit("rm", "-q", "gone")
	write(t, dir, map[string]string{"committed": "a"})
	commit("second")
	write(t, dir, map[string]string{"edited": "b", "untracked": "a", "ignored": "a"})

	files, deleted, err := changedFiles(t.Context(), base(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	if diff := cmp.Diff([]string{"committed", "edited", "new name", "untracked"}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"gone", "moved"}, deleted); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	if _, _, err := changedFiles(t.Context(), "nothing"); err == nil || !strings.Contains(err.Error(), "BASE=") {
		t.Errorf("got error %v", err)
	}
}
