// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
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
