// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"syscall"
	"time"
	"unicode/utf8"

	"parley.dev/parley/internal/workspace/protocol"
)

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
