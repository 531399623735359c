// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"archive/tar"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley.dev/parley/client"
	"parley.dev/parley/test/kit/check"
)

// workspaceOf serves the workspace of the chat triage: one archive for each path, and what was put.
func workspaceOf(t *testing.T, p *person, archives map[string][]tar.Header) (url string, put map[string]string) {
	t.Helper()
	put = map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1beta1/namespaces/"+p.namespace+"/chats/triage/workspace" {
			http.NotFound(w, r)
			return
		}
		at := r.URL.Query().Get("path")
		if r.Method == http.MethodPut {
			content, _ := io.ReadAll(r.Body) // The test compares it.
			put[at] = r.URL.Query().Get("executable") + " " + string(content)
			return
		}
		archive := tar.NewWriter(w)
		for _, header := range archives[at] {
			header.Size = int64(len(header.Linkname))
			content := header.Linkname
			if header.Typeflag != tar.TypeReg {
				header.Size, content = 0, ""
			} else {
				header.Linkname = ""
			}
			check.OK(t, archive.WriteHeader(&header))
			_, err := io.WriteString(archive, content)
			check.OK(t, err)
		}
		if at == "broken" {
			panic(http.ErrAbortHandler)
		}
		check.OK(t, archive.Close())
	}))
	server.Config.ErrorLog = nil
	t.Cleanup(server.Close)
	return server.URL, put
}

func TestCpCopiesFromTheWorkspace(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	file := func(name, content string, mode int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Linkname: content, Mode: mode}
	}
	url, _ := workspaceOf(t, p, map[string][]tar.Header{
		"app/run.sh": {file("run.sh", "#!/bin/sh\n", 0o755)},
		"app": {{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755}, file("a", "A", 0o600),
			{Typeflag: tar.TypeDir, Name: "sub/"}, file("sub/b", "B", 0o644),
			{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "/etc/passwd"}},
		"bad": {{Typeflag: tar.TypeDir, Name: "./"}, file("../../out", "x", 0o644), file("/abs", "x", 0o644),
			{Typeflag: tar.TypeReg, Name: "secret", PAXRecords: map[string]string{client.ArchiveError: "No permission."}},
			file("last", "L", 0o644)},
		"broken": {{Typeflag: tar.TypeDir, Name: "./"}, file("a", strings.Repeat("x", 1<<16), 0o644)},
	})
	dir := t.TempDir()
	run := func(from, to string) *command { return p.run("cp", from, to, "--gateway", url) }
	run("triage:app/run.sh", dir).shows("")
	run("chat/triage:/app/run.sh", filepath.Join(dir, "new/name")).shows("")
	run("triage:app/", filepath.Join(dir, "copy")).shows("", "Not copied: link: it is a link to /etc/passwd")
	run("triage:app", dir).succeeds()
	run("triage:bad", filepath.Join(dir, "in/bad")).exits(exitFailed, "3 files could not be copied")
	run("triage:broken", filepath.Join(dir, "broken")).exits(exitFailed, "the copy is not complete")
	found := map[string]string{}
	check.OK(t, filepath.WalkDir(dir, func(at string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.Contains(at, "broken") {
			return err
		}
		content, err := os.ReadFile(at)
		check.OK(t, err)
		info, err := entry.Info()
		check.OK(t, err)
		name, err := filepath.Rel(dir, at)
		found[name] = fmt.Sprintf("%t %s", info.Mode()&0o100 != 0, content)
		return err
	}))
	check.Equal(t, "files", map[string]string{"run.sh": "true #!/bin/sh\n", "new/name": "true #!/bin/sh\n",
		"copy/a": "false A", "copy/sub/b": "false B", "app/a": "false A", "app/sub/b": "false B", "in/bad/last": "false L"},
		found)
}

func TestCpCopiesToTheWorkspace(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	url, put := workspaceOf(t, p, nil)
	dir := t.TempDir()
	check.OK(t, os.MkdirAll(filepath.Join(dir, "app/sub"), 0o755))
	check.OK(t, os.WriteFile(filepath.Join(dir, "app/run.sh"), []byte("exit"), 0o755))
	check.OK(t, os.WriteFile(filepath.Join(dir, "app/sub/b"), []byte("B"), 0o600))
	check.OK(t, os.Symlink("/etc", filepath.Join(dir, "app/etc")))
	huge := filepath.Join(dir, "huge")
	check.OK(t, os.WriteFile(huge, nil, 0o600))
	check.OK(t, os.Truncate(huge, maxCopied+1))
	run := func(from, to string) *command { return p.run("cp", from, to, "--gateway", url) }
	run(filepath.Join(dir, "app"), "triage:").shows("", "Not copied: ", "it is no regular file")
	run(filepath.Join(dir, "app/sub"), "triage:other").succeeds()
	run(filepath.Join(dir, "app/sub/b"), "triage:into/").succeeds()
	run(dir, "triage:x").exits(exitFailed, "1 files could not be copied")
	check.Equal(t, "files", map[string]string{"app/run.sh": "true exit", "app/sub/b": " B", "other/b": " B", "into/b": " B",
		"x/app/run.sh": "true exit", "x/app/sub/b": " B"}, put)
	run(filepath.Join(dir, "none"), "triage:").exits(exitFailed, "no such file")
	run(huge, "elsewhere").exits(exitUsage, "must be CHAT:PATH")
	run("pod/x:y", dir).exits(exitUsage, "names no chat")
	run(filepath.Join(dir, "app/sub/b"), "other:").exits(exitNotFound, "404")
}
