// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	references = regexp.MustCompile(`\b(?:href|src)="?([^\s">]+)`)
	targets    = regexp.MustCompile(`\bid="?([^\s">]+)`)
)

// builtSite is the site of a version, by the paths of its files.
func builtSite(t *testing.T) map[string]string {
	t.Helper()
	out := t.TempDir()
	if output, err := exec.CommandContext(t.Context(), "../site/build.sh", "v0.0.0", out).CombinedOutput(); err != nil {
		t.Fatalf("building the site: %v\n%s", err, output)
	}
	files := map[string]string{}
	err := filepath.WalkDir(out, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, out+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestSiteHasNoDeadLinks(t *testing.T) {
	files, links := builtSite(t), 0
	ids := map[string]bool{}
	for path, text := range files {
		for _, id := range targets.FindAllStringSubmatch(text, -1) {
			ids[path+"#"+id[1]] = true
		}
	}
	for path, text := range files {
		if filepath.Ext(path) != ".html" {
			continue
		}
		for _, found := range references.FindAllStringSubmatch(text, -1) {
			link, err := url.Parse(found[1])
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if link.IsAbs() {
				continue
			}
			links++
			target := path
			if link.Path != "" {
				target = filepath.Join(filepath.Dir(path), link.Path)
			}
			if strings.HasSuffix(link.Path, "/") {
				target = filepath.Join(target, "index.html")
			}
			if _, exists := files[target]; !exists || link.Fragment != "" && !ids[target+"#"+link.Fragment] {
				t.Errorf("%s links to %s", path, found[1])
			}
		}
	}
	if links < 1000 {
		t.Errorf("found only %d links", links)
	}
}

func TestSearchIndexHasEveryPage(t *testing.T) {
	files := builtSite(t)
	var index []struct{ Title, URL, Text string }
	if err := json.Unmarshal([]byte(files["v0.0.0/index.json"]), &index); err != nil {
		t.Fatal(err)
	}
	indexed := map[string]bool{}
	for _, page := range index {
		if page.Title == "" || page.Text == "" {
			t.Errorf("%s has the title %q and %d characters", page.URL, page.Title, len(page.Text))
		}
		indexed[strings.Trim(page.URL, "/")] = true
	}
	pages, err := filepath.Glob("../../docs/*/*.md")
	if err != nil || len(pages) < 50 {
		t.Fatalf("found %d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		name := strings.TrimSuffix(strings.TrimPrefix(page, "../../docs/"), ".md")
		if !indexed[name] {
			t.Errorf("%s is not in the index", name)
		}
	}
}
