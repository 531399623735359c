// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

// archived are the entries of the archive of a path, by name.
func (w *workspace) archived(asked string) map[string]string {
	w.t.Helper()
	a, err := w.Archive(asked)
	check.OK(w.t, err)
	var out bytes.Buffer
	check.OK(w.t, a.Write(w.t.Context(), &out))
	return entries(w.t, &out)
}

func entries(t testing.TB, archive io.Reader) map[string]string {
	t.Helper()
	found := map[string]string{}
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		check.OK(t, err)
		content, err := io.ReadAll(reader)
		check.OK(t, err)
		found[header.Name] = fmt.Sprintf("%c %o %s%s%s", header.Typeflag, header.Mode, content, header.Linkname,
			header.PAXRecords[protocol.ArchiveError])
	}
}

func TestArchiveHasFilesDirectoriesAndLinks(t *testing.T) {
	w := newWorkspace(t)
	w.put("app/run.sh", "#!/bin/sh\n")
	w.put("app/sub/gr\xfcn", strings.Repeat("x", 5))
	check.OK(t, os.Chmod(filepath.Join(w.dir, "app/run.sh"), 0o755))
	w.link(w.out, "app/out")
	w.link("app", "also")
	check.OK(t, syscall.Mkfifo(filepath.Join(w.dir, "app/pipe"), 0o600))
	for _, asked := range []string{"app", "./also/", filepath.Join(w.dir, "app")} {
		check.Equal(t, asked, map[string]string{"./": "5 755 ", "run.sh": "0 755 #!/bin/sh\n", "sub/": "5 755 ",
			"sub/gr\xfcn": "0 644 xxxxx", "out": "2 777 " + w.out}, w.archived(asked))
	}
	check.Equal(t, "a file", map[string]string{"run.sh": "0 755 #!/bin/sh\n"}, w.archived("also/run.sh"))
}

func TestArchiveRefusesMissingPathsAndPipes(t *testing.T) {
	w := newWorkspace(t)
	w.link(w.out, "out")
	check.OK(t, syscall.Mkfifo(filepath.Join(w.dir, "pipe"), 0o600))
	for asked, code := range map[string]protocol.ErrorCode{"": protocol.BadRequest, "none": protocol.NotFound,
		"pipe": protocol.NotRegular, "out": protocol.OutsideWorkspace, "../canary": protocol.OutsideWorkspace} {
		_, err := w.Archive(asked)
		if refused, ok := errors.AsType[*protocol.Error](err); !ok || refused.Code != code {
			t.Errorf("%q: got %v", asked, err)
		}
	}
}

func TestArchiveEndsWithItsRequest(t *testing.T) {
	w := newWorkspace(t)
	a, err := w.Archive(".")
	check.OK(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Write(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestArchiveNamesWhatCannotBeRead(t *testing.T) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	check.OK(t, unreadable(w, "a", fs.ErrPermission))
	check.OK(t, w.Close())
	if got := entries(t, &out)["a"]; !strings.Contains(got, `No permission for "a"`) {
		t.Errorf("got %q", got)
	}
}

func TestArchiveGoesOnAfterAFileThatShrinks(t *testing.T) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	check.OK(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: 5}))
	content := &padded{from: strings.NewReader("abc"), left: 5}
	_, err := io.Copy(w, content)
	check.OK(t, err)
	check.OK(t, w.Close())
	check.Equal(t, "content", map[string]string{"a": "0 0 abc\x00\x00"}, entries(t, &out))
	if !errors.Is(content.err, io.EOF) {
		t.Errorf("got %v", content.err)
	}
}
