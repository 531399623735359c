// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// maxPath bounds a path as Linux does.
	maxPath = 4096
	// maxDepth bounds the elements of a path, so that it is cheap to resolve.
	maxDepth = 256
	// maxLinks bounds the links of one path as Linux does.
	maxLinks = 40
)

// place is where a path leads.
type place struct {
	// asked is the path of the request.
	asked string
	// path is relative to the workspace's directory and has no links; "." is the directory itself.
	path string
	// info of the file there; nil: there is none.
	info fs.FileInfo
}

// directory of the workspace's files. Every access to them goes through its root.
type directory struct {
	root *os.Root
	// bases are the elements of its absolute names: that of the options, and that without links.
	bases [][]string
}

// resolve follows a path like the kernel, within the workspace's directory: through links, also through absolute ones
// that stay within. A path to a missing file has a place too. Links may change after this; os.Root keeps later accesses
// within the directory.
func (d *directory) resolve(asked string) (place, error) {
	todo, err := d.relative(asked)
	if err != nil {
		return place{}, err
	}
	if len(todo) > maxDepth {
		return place{}, refuse(protocol.BadRequest, "The path %q has more than %d elements.", asked, maxDepth)
	}
	w := walker{dir: d, asked: asked, todo: todo}
	for len(w.todo) > 0 {
		if err := w.step(); err != nil {
			return place{}, err
		}
	}
	p := place{asked: asked, path: join(w.done)}
	if w.missing {
		return p, nil
	}
	if p.info, err = d.root.Lstat(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return place{}, explain(asked, err)
	}
	return p, nil
}

// walker follows a path, element by element.
type walker struct {
	dir        *directory
	asked      string
	done, todo []string
	links      int
	missing    bool
}

func (w *walker) step() error {
	name := w.todo[0]
	w.todo = w.todo[1:]
	if name == ".." {
		if len(w.done) == 0 {
			return outside(w.asked)
		}
		w.done = w.done[:len(w.done)-1]
		return nil
	}
	at := join(append(slices.Clone(w.done), name))
	info, err := w.dir.root.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !slices.Contains(w.todo, ".."):
		w.done, w.todo, w.missing = append(append(w.done, name), w.todo...), nil, true
	case err != nil:
		return explain(w.asked, err)
	case info.Mode().Type() == fs.ModeSymlink:
		return w.follow(at)
	case !info.IsDir() && len(w.todo) > 0:
		return refuse(protocol.NotFound, "%q: %q is %s, not a directory.", w.asked, at, describe(info.Mode()))
	default:
		w.done = append(w.done, name)
	}
	return nil
}

// follow replaces a link by its target.
func (w *walker) follow(at string) error {
	if w.links++; w.links > maxLinks {
		return refuse(protocol.BadRequest, "The links of %q lead in a circle.", w.asked)
	}
	target, err := w.dir.root.Readlink(at)
	if err != nil {
		return explain(w.asked, err)
	}
	names := elements(target)
	if path.IsAbs(target) {
		within, ok := w.dir.within(names)
		if !ok {
			return refuse(protocol.OutsideWorkspace,
				"%q: the link %q leads out of the workspace, to %q. Use execute for files elsewhere.", w.asked, at, target)
		}
		names, w.done = within, nil
	}
	if w.todo = append(slices.Clone(names), w.todo...); len(w.todo) > maxDepth {
		return refuse(protocol.BadRequest, "The links of %q lead through more than %d elements.", w.asked, maxDepth)
	}
	return nil
}

// relative splits a path into elements below the workspace's directory.
func (d *directory) relative(asked string) ([]string, error) {
	switch {
	case asked == "":
		return nil, refuse(protocol.BadRequest, "A path is missing.")
	case len(asked) > maxPath:
		return nil, refuse(protocol.BadRequest, "The path has %d bytes, more than %d.", len(asked), maxPath)
	case strings.ContainsRune(asked, 0) || !utf8.ValidString(asked):
		return nil, refuse(protocol.BadRequest, "The path %q is no valid UTF-8 text, or holds a zero byte.", asked)
	}
	names := elements(asked)
	if !path.IsAbs(asked) {
		return names, nil
	}
	if within, ok := d.within(names); ok {
		return within, nil
	}
	return nil, outside(asked)
}

// within removes the workspace's directory from the elements of an absolute path that begins with it.
func (d *directory) within(names []string) ([]string, bool) {
	for _, base := range d.bases {
		if len(names) >= len(base) && slices.Equal(names[:len(base)], base) {
			return names[len(base):], true
		}
	}
	return nil, false
}

// missing are the directories that have to be created, the outermost first.
func (d *directory) missing(dir string) (dirs []string, err error) {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := d.root.Lstat(dir); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs, nil
}

func outside(asked string) error {
	return refuse(protocol.OutsideWorkspace,
		"%q is outside of the workspace's directory. Use execute for files elsewhere.", asked)
}

// elements of a path, without empty ones and ".".
func elements(name string) []string {
	return slices.DeleteFunc(strings.Split(name, "/"), func(e string) bool { return e == "" || e == "." })
}

func join(names []string) string {
	if len(names) == 0 {
		return "."
	}
	return strings.Join(names, "/")
}

// size formats a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	case n < 10<<30:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d GiB", n>>30)
}

const (
	// openQuietly keeps pipes and devices from blocking the agent, or from becoming its terminal.
	openQuietly = syscall.O_NONBLOCK | syscall.O_NOCTTY
	// sniffed is how much of a file decides whether it is text, as in Git.
	sniffed = 8000
)

// open opens the regular file at a path for reading.
func (d *directory) open(asked string) (*os.File, place, error) {
	p, err := d.resolve(asked)
	if err != nil {
		return nil, place{}, err
	}
	return d.openPlace(p)
}

// openPlace opens the regular file at a place, and returns the place with the info of the open file.
func (d *directory) openPlace(p place) (*os.File, place, error) {
	if p.info == nil {
		return nil, place{}, explain(p.asked, fs.ErrNotExist)
	}
	if !p.info.Mode().IsRegular() {
		return nil, place{}, notRegular(p.asked, p.info.Mode())
	}
	file, info, err := d.openRegular(p.path)
	if err != nil {
		return nil, place{}, explain(p.asked, err)
	}
	p.info = info
	return file, p, nil
}

// openRegular opens the file at a path without links, and checks that it is regular.
func (d *directory) openRegular(path string) (*os.File, fs.FileInfo, error) {
	file, err := d.root.OpenFile(path, os.O_RDONLY|openQuietly, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info.Mode())
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// closeRead closes a file that was only read.
func closeRead(file io.Closer) { file.Close() }

// Content is the content of a file.
type Content struct {
	Size     int64
	Modified time.Time
	// MediaType of the first bytes.
	MediaType string
	// ReadCloser reads as many bytes as the file had when it was opened.
	io.ReadCloser
}

// Content opens a file of at most protocol.MaxFileBytes. The caller closes it.
func (f *Files) Content(ctx context.Context, asked string) (*Content, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file, p, err := f.dir.open(asked)
	if err != nil {
		return nil, err
	}
	length := p.info.Size()
	if length > protocol.MaxFileBytes {
		return nil, errors.Join(refuse(protocol.TooLarge, "%q has %s, more than %s. Use execute for a part of it.", asked,
			size(length), size(protocol.MaxFileBytes)), file.Close())
	}
	head, err := headOf(file)
	if err != nil {
		return nil, errors.Join(explain(asked, err), file.Close())
	}
	return &Content{Size: length, Modified: p.info.ModTime(), MediaType: http.DetectContentType(head),
		ReadCloser: struct {
			io.Reader
			io.Closer
		}{io.LimitReader(file, length), file}}, nil
}

// headOf reads the beginning of a file without moving its offset.
func headOf(file *os.File) ([]byte, error) {
	head := make([]byte, sniffed)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head[:n], nil
}

// readText is the content of a text file of at most protocol.MaxFileBytes.
func readText(file *os.File, p place) (string, error) {
	if p.info.Size() > protocol.MaxFileBytes {
		return "", refuse(protocol.TooLarge, "%q has %s, more than %s. Use execute to change it.", p.asked,
			size(p.info.Size()), size(protocol.MaxFileBytes))
	}
	content, err := io.ReadAll(io.LimitReader(file, protocol.MaxFileBytes+1))
	switch {
	case err != nil:
		return "", explain(p.asked, err)
	case len(content) > protocol.MaxFileBytes:
		return "", refuse(protocol.TooLarge, "%q is growing, and has more than %s.", p.asked, size(protocol.MaxFileBytes))
	case !isText(content):
		return "", notText(p.asked, content, int64(len(content)))
	}
	return string(content), nil
}

// isText reports whether content is UTF-8 without zero bytes.
func isText(content []byte) bool { return bytes.IndexByte(content, 0) < 0 && utf8.Valid(content) }

// notText refuses a file that is no text.
func notText(asked string, head []byte, length int64) error {
	if bytes.IndexByte(head, 0) < 0 {
		at := 0
		for at < len(head) {
			r, n := utf8.DecodeRune(head[at:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
		return refuse(protocol.NotText, "%q is no UTF-8 text: byte %d of its %s is part of no character.", asked, at+1,
			size(length))
	}
	return refuse(protocol.NotText, "%q is binary: %s of type %s.", asked, size(length), http.DetectContentType(head))
}
