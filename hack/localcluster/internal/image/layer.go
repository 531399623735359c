// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// writeLayer writes the layer's tar. Parent directories are added once, before what they hold.
func writeLayer(w io.Writer, files []File) error {
	l := layerWriter{tar: tar.NewWriter(w), seen: map[string]bool{}}
	for _, f := range files {
		if err := l.addTree(f); err != nil {
			return err
		}
	}
	if err := l.tar.Close(); err != nil {
		return fmt.Errorf("finishing the layer: %w", err)
	}
	return nil
}

// layerWriter remembers which paths are already in the layer: a path twice would make the image's content
// depend on who unpacks it.
type layerWriter struct {
	tar  *tar.Writer
	seen map[string]bool
}

// addTree adds one file, or a directory with everything below it in lexical order.
func (l *layerWriter) addTree(f File) error {
	root := strings.TrimPrefix(path.Clean(f.Target), "/")
	return filepath.WalkDir(f.Source, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		rel, err := filepath.Rel(f.Source, name)
		if err != nil {
			return fmt.Errorf("placing %s: %w", name, err)
		}
		target := path.Join(root, filepath.ToSlash(rel))
		info, err := os.Stat(name) // follows links: what the link points at is what goes in
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		switch {
		case entry.IsDir():
			return l.addDirs(target)
		case info.Mode().IsRegular():
			return l.addFile(name, target, info)
		}
		return fmt.Errorf("%s is neither a regular file nor a directory", name)
	})
}

// addDirs adds a directory and its parents.
func (l *layerWriter) addDirs(dir string) error {
	if dir == "." || dir == "" || l.seen[dir] {
		return nil
	}
	if err := l.addDirs(path.Dir(dir)); err != nil {
		return err
	}
	l.seen[dir] = true
	if err := l.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
		return fmt.Errorf("adding directory %s: %w", dir, err)
	}
	return nil
}

func (l *layerWriter) addFile(source, target string, info fs.FileInfo) error {
	if l.seen[target] {
		return fmt.Errorf("/%s is in the image twice", target)
	}
	if err := l.addDirs(path.Dir(target)); err != nil {
		return err
	}
	l.seen[target] = true
	mode := int64(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	if err := l.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: target, Mode: mode,
		Size: info.Size()}); err != nil {
		return fmt.Errorf("adding /%s: %w", target, err)
	}
	in, err := os.Open(source)
	if err != nil {
		return fmt.Errorf("adding /%s: %w", target, err)
	}
	defer func() { _ = in.Close() }() // it is only read
	if _, err := io.Copy(l.tar, in); err != nil {
		return fmt.Errorf("adding /%s from %s: %w", target, source, err)
	}
	return nil
}
