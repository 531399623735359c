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
	"unicode/utf8"

	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// openQuietly keeps a file that is none from making the agent wait, or from becoming its terminal.
	openQuietly = syscall.O_NONBLOCK | syscall.O_NOCTTY
	// sniffed is how much of a file tells whether it is text, as much as Git looks at.
	sniffed = 8000
)

// open opens the regular file that a path leads to for reading.
func (d *directory) open(asked string) (*os.File, place, error) {
	p, err := d.resolve(asked)
	if err != nil {
		return nil, place{}, err
	}
	return d.openPlace(p)
}

// openPlace opens the regular file at a place. The place that it returns says what that is once it is open.
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

// openRegular opens what is at a path without links, and looks again at what that is: it may have changed since.
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

// Content is a file as it is.
type Content struct {
	protocol.FileInfo
	// MediaType is what the first bytes look like.
	MediaType string
	// ReadCloser reads the file, as many bytes as it had when it was opened.
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
	return &Content{FileInfo: infoOf(p.path, p.info), MediaType: http.DetectContentType(head), ReadCloser: struct {
		io.Reader
		io.Closer
	}{io.LimitReader(file, length), file}}, nil
}

// headOf is the beginning of a file, and leaves the file where it is.
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

// isText reports whether it is UTF-8 without zero bytes.
func isText(content []byte) bool { return bytes.IndexByte(content, 0) < 0 && utf8.Valid(content) }

// notText says what a file is that is no text.
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
