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
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley.dev/parley/client"
	"parley.dev/parley/test/kit/check"
)

// workspaceOf serves the workspace of the chat triage: one archive for each path, for the path raw as it is. It returns
// what was put.
func workspaceOf(t *testing.T, p *person, archives map[string][]tar.Header, raw ...[]byte) (url string,
	put map[string]string) {
	t.Helper()
	put = map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1beta1/namespaces/"+p.namespace+"/chats/triage/workspace" {
			http.NotFound(w, r)
			return
		}
		at := r.URL.Query().Get("path")
		if r.Method == http.MethodPut && strings.HasSuffix(at, "refused") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"status": 400, "reason": "BadRequest", "message": "No permission."}`)
			return
		}
		if r.Method == http.MethodPut {
			content, _ := io.ReadAll(r.Body) // The test compares it.
			put[at] = r.URL.Query().Get("executable") + " " + string(content)
			return
		}
		if at == "raw" {
			_, err := w.Write(raw[0])
			check.OK(t, err)
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
			{Typeflag: tar.TypeSymlink, Name: "a\nerror: b", Linkname: "c"}, file("last", "L", 0o644)},
		"shrunk.log": {file("shrunk.log", "half\x00\x00", 0o644), {Typeflag: tar.TypeReg, Name: "shrunk.log",
			PAXRecords: map[string]string{client.ArchiveError: "It has become shorter."}}},
		"broken": {{Typeflag: tar.TypeDir, Name: "./"}, file("a", strings.Repeat("x", 1<<16), 0o644)},
	})
	dir := t.TempDir()
	run := func(from, to string) *command { return p.run("cp", from, to, "--gateway", url) }
	run("triage:app/run.sh", dir).shows("")
	run("triage:app/run.sh", "-").shows("#!/bin/sh\n")
	run("triage:app", "-").exits(exitUsage, "only a regular file")
	run("triage:shrunk.log", "-").exits(exitFailed, "It has become shorter.")
	run("triage:shrunk.log", dir).exits(exitFailed, "1 file could not be copied")
	check.OK(t, os.WriteFile(filepath.Join(dir, "whole.log"), []byte("whole"), 0o600))
	run("triage:shrunk.log", filepath.Join(dir, "whole.log")).exits(exitFailed, "1 file could not be copied")
	run("chat/triage:app/run.sh", filepath.Join(dir, "new/name")).shows("")
	run("triage:app/", filepath.Join(dir, "copy")).shows("", "Not copied: link: it is a link to /etc/passwd")
	run("triage:app", dir).succeeds()
	bad := run("triage:bad", filepath.Join(dir, "in/bad"))
	bad.exits(exitFailed, "3 files could not be copied")
	check.Contains(t, bad.errOut.String(), "\nNot copied: a error: b: it is a link")
	check.OK(t, os.Mkdir(filepath.Join(dir, "kept"), 0o700))
	check.OK(t, os.WriteFile(filepath.Join(dir, "kept/a"), []byte("old"), 0o600))
	run("triage:app/run.sh", filepath.Join(dir, "made")+"/").succeeds()
	run("triage:broken", filepath.Join(dir, "broken")).exits(exitFailed, "the copy is not complete")
	if left, err := filepath.Glob(filepath.Join(dir, "*/.copy-*")); err != nil || len(left) != 0 {
		t.Errorf("copies that broke off left %v: %v", left, err)
	}
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
	check.Equal(t, "files", map[string]string{"run.sh": "true #!/bin/sh\n", "made/run.sh": "true #!/bin/sh\n", "kept/a": "false old", "whole.log": "false whole", "new/name": "true #!/bin/sh\n",
		"copy/a": "false A", "copy/sub/b": "false B", "app/a": "false A", "app/sub/b": "false B", "in/bad/last": "false L"},
		found)
}

// sparseArchive is what GNU tar makes of a file of one TiB that has no content.
func sparseArchive(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	check.OK(t, os.WriteFile(filepath.Join(dir, "huge"), nil, 0o600))
	check.OK(t, os.Truncate(filepath.Join(dir, "huge"), 1<<40))
	archive, err := exec.CommandContext(t.Context(), "tar", "-C", dir, "--sparse", "--format=pax", "-c", "huge").Output()
	check.OK(t, err)
	return archive
}

func TestCpRefusesFilesThatFillTheDisk(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	url, _ := workspaceOf(t, p, nil, sparseArchive(t))
	target := filepath.Join(t.TempDir(), "huge")
	p.run("cp", "triage:raw", "-", "--gateway", url).exits(exitUsage, "only a regular file")
	c := p.run("cp", "triage:raw", target, "--gateway", url)
	c.exits(exitFailed, "1 file could not be copied")
	check.Contains(t, c.errOut.String(), "it is a sparse file")
	if _, err := os.Stat(target); !os.IsNotExist(err) {
		t.Errorf("the file exists: %v", err)
	}
}

func TestCpCopiesToTheWorkspace(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	url, put := workspaceOf(t, p, nil)
	dir := t.TempDir()
	check.OK(t, os.MkdirAll(filepath.Join(dir, "app/sub"), 0o755))
	check.OK(t, os.WriteFile(filepath.Join(dir, "app/run.sh"), []byte("exit"), 0o755))
	check.OK(t, os.WriteFile(filepath.Join(dir, "app/sub/b"), []byte("B"), 0o600))
	check.OK(t, os.WriteFile(filepath.Join(dir, "app/refused"), []byte("R"), 0o600))
	check.OK(t, os.Mkdir(filepath.Join(dir, "app/none"), 0o700))
	check.OK(t, os.Symlink("/etc", filepath.Join(dir, "app/etc")))
	huge := filepath.Join(dir, "huge")
	check.OK(t, os.WriteFile(huge, nil, 0o600))
	check.OK(t, os.Truncate(huge, maxCopied+1))
	run := func(from, to string) *command { return p.run("cp", from, to, "--gateway", url) }
	c := run(filepath.Join(dir, "app/sub")+"/..", "triage:.")
	c.exits(exitFailed, "1 file could not be copied")
	check.Contains(t, c.errOut.String(), "refused: the gateway refused", "etc: it is no regular file",
		"none: it is an empty directory")
	run(filepath.Join(dir, "app/sub"), "triage:other").succeeds()
	run(filepath.Join(dir, "app/sub/b"), "triage:into/").succeeds()
	run(dir, "triage:x").exits(exitFailed, "2 files could not be copied")
	check.Equal(t, "files", map[string]string{"app/run.sh": "true exit", "app/sub/b": " B", "other/b": " B", "into/b": " B",
		"x/app/run.sh": "true exit", "x/app/sub/b": " B"}, put)
	run(filepath.Join(dir, "none"), "triage:").exits(exitFailed, "no such file")
	run(huge, "elsewhere").exits(exitUsage, "must be CHAT:PATH")
	run("pod/x:y", dir).exits(exitUsage, "names no chat")
	run(filepath.Join(dir, "app/sub/b"), "other:").exits(exitNotFound, "404")
}
