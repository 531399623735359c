// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"parley.dev/parley/internal/workspace/protocol"
)

// Write gives a file new content, and makes it and the directories on its way if they are missing. The key may be
// empty; see protocol.HeaderCall.
func (f *Files) Write(ctx context.Context, key, asked, content string) (*protocol.FileInfo, error) {
	if len(content) > protocol.MaxFileBytes {
		return nil, refuse(protocol.TooLarge, "The content of %q has %s, more than %s.", asked, size(int64(len(content))),
			size(protocol.MaxFileBytes))
	}
	raw, err := f.committer.once(ctx, key, hashOf("write\n", asked, "\n", content), func() (*change, error) {
		return f.writing(asked, content)
	})
	return answered[protocol.FileInfo](raw, err)
}

func (f *Files) writing(asked, content string) (*change, error) {
	p, err := f.dir.resolve(asked)
	if err != nil {
		return nil, err
	}
	if err := f.dir.writable(p); err != nil {
		return nil, err
	}
	return &change{
		files:  []newContent{{p, content}},
		answer: protocol.FileInfo{Path: p.path, Size: int64(len(content)), Type: "file", Created: p.info == nil},
	}, nil
}

// writable reports why a file may not be replaced. That it can be renamed over is not enough: a file that its owner
// made read-only is to stay.
func (d *directory) writable(p place) error {
	switch {
	case p.info != nil && !p.info.Mode().IsRegular():
		return notRegular(p.asked, p.info.Mode())
	case strings.HasSuffix(p.asked, "/"):
		return refuse(protocol.NotRegular, "%q names a directory, because it ends in a slash.", p.asked)
	case p.info == nil:
		return nil
	}
	file, err := d.root.OpenFile(p.path, os.O_WRONLY|openQuietly, 0)
	switch {
	case errors.Is(err, syscall.ETXTBSY): // A program that runs keeps the content that it was started from.
		return nil
	case err != nil:
		return explain(p.asked, err)
	}
	if err := file.Close(); err != nil {
		return explain(p.asked, err)
	}
	return nil
}

// answered decodes the answer of a change.
func answered[T any](raw json.RawMessage, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	var answer T
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("decoding the answer of a change: %w", err)
	}
	return &answer, nil
}
