// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// areas are the folders of internal/, and which others their packages may import. There are no circles among them.
var areas = map[string][]string{
	"text":       nil,
	"netguard":   nil,
	"telemetry":  nil,
	"archive":    {"chat", "text"},
	"approval":   {"text"},
	"pods":       {},
	"chat":       {"approval", "netguard", "pods", "telemetry", "text"},
	"kube":       {"chat", "netguard", "pods", "text"},
	"stream":     {"chat", "kube", "netguard"},
	"workspace":  {"chat", "kube", "netguard", "pods", "text"},
	"tools":      {"approval", "chat", "kube", "netguard", "text", "workspace"},
	"mcp":        {"approval", "netguard", "text", "tools", "workspace"},
	"generation": {"approval", "chat", "kube", "mcp", "netguard", "pods", "stream", "telemetry", "text", "tools", "workspace"},
	"gateway":    {"archive", "chat", "kube", "netguard", "pods", "stream", "telemetry", "text", "workspace"},
	"cli":        {"chat", "gateway", "kube", "netguard", "text"},
}

// maxAreas and maxPackages bound what "ls" shows: folders of internal/, and packages directly below each of them.
const maxAreas, maxPackages = 15, 12

func TestAreasImportOnlyTheirNeighbors(t *testing.T) {
	used := map[string]bool{}
	for _, p := range packages(t) {
		from, isInternal := areaOf(p.ImportPath)
		for _, path := range p.Imports {
			to, _ := areaOf(path)
			if !isInternal || to == "" || to == from {
				continue
			}
			used[from+" "+to] = true
			if !slices.Contains(areas[from], to) {
				t.Errorf("%s imports %s: add %q to %q in areas, if it belongs there", p.ImportPath, path, to, from)
			}
		}
	}
	for from, others := range areas {
		for _, to := range others {
			if !used[from+" "+to] {
				t.Errorf("no package of %s imports one of %s: remove the entry of areas", from, to)
			}
		}
	}
}

func TestAreasHaveNoCircles(t *testing.T) {
	left := maps.Clone(areas)
	for len(left) > 0 {
		before := len(left)
		maps.DeleteFunc(left, func(_ string, others []string) bool {
			return !slices.ContainsFunc(others, func(o string) bool { _, is := left[o]; return is })
		})
		if len(left) == before {
			t.Fatalf("areas import each other: %v", slices.Sorted(maps.Keys(left)))
		}
	}
}

func TestFoldersStayFew(t *testing.T) {
	if found := folders(t, "../../internal"); len(found) > maxAreas || len(found) != len(areas) {
		t.Errorf("internal/ has %d folders, %d are listed, and %d are allowed: %v", len(found), len(areas), maxAreas, found)
	}
	for area := range areas {
		if found := folders(t, filepath.Join("../../internal", area)); len(found) > maxPackages {
			t.Errorf("%s has %d packages, %d are allowed: %v", area, len(found), maxPackages, found)
		}
	}
}

// areaOf is the folder of internal/ that the package is in; empty if it is in none.
func areaOf(path string) (string, bool) {
	local, isInternal := strings.CutPrefix(path, module+"internal/")
	if !isInternal {
		return "", false
	}
	area, _, _ := strings.Cut(local, "/")
	return area, true
}

func folders(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "testdata" {
			names = append(names, e.Name())
		}
	}
	return names
}
