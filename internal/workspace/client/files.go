// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// contentTime is how long the content of a file may be on its way, in addition to Options.Timeout.
	contentTime = 30 * time.Second
	// maxPath is the longest path that Linux takes.
	maxPath = 4096
	// treePath is for files that people copy.
	treePath = "/v1/tree"
)

// Read reads lines of a text file.
func (c *Client) Read(ctx context.Context, r protocol.ReadRequest) (*protocol.ReadResponse, error) {
	return send[protocol.ReadResponse](ctx, c, request{method: http.MethodPost, path: "/v1/read"}, r)
}

// Content returns the content of a file of at most so many bytes. The refusal of a larger one is protocol.TooLarge.
func (c *Client) Content(ctx context.Context, file string, most int64) ([]byte, error) {
	most = min(most, protocol.MaxFileBytes)
	got, err := c.do(ctx, request{method: http.MethodGet, path: "/v1/files", query: url.Values{"path": {file}},
		most: most + 1, partly: true, wait: contentTime})
	switch {
	case err != nil:
		return nil, err
	case int64(len(got.body)) > most:
		return nil, &protocol.Error{Code: protocol.TooLarge, Message: fmt.Sprintf(
			"the file %.200q has more than %d bytes", file, most)}
	}
	return got.body, nil
}

// OpenArchive opens a tar archive of the file or directory at a path. A read fails where the agent has not sent all of
// it. The caller closes it.
func OpenArchive(ctx context.Context, c *Client, path string) (io.ReadCloser, error) {
	ctx, stop := context.WithCancel(ctx)
	prepared, err := c.prepare(ctx, request{method: http.MethodGet, path: treePath, query: url.Values{"path": {path}}})
	if err != nil {
		stop()
		return nil, err
	}
	late := time.AfterFunc(c.options.Timeout+contentTime, stop) // An agent may be silent.
	response, err := c.http.Do(prepared)
	late.Stop()
	if err != nil {
		stop()
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if response.StatusCode != http.StatusOK {
		defer stop()
		defer response.Body.Close()
		err = refusal(response)
		if busy, ok := errors.AsType[*busyError](err); ok {
			err = busy.error
		}
		return nil, err
	}
	return archive{response.Body, stop}, nil
}

// archive is the body of an answer whose request ends when it is closed.
type archive struct {
	io.ReadCloser
	stop func()
}

// Close implements io.Closer.
func (a archive) Close() error {
	defer a.stop()
	return a.ReadCloser.Close()
}

// PutFile writes a file of a person as a whole. A new file is executable on demand. It has no key: the journal of the
// agent is for the calls of the model, and the same content may be written twice.
func PutFile(ctx context.Context, c *Client, file string, content []byte, executable bool) (*protocol.FileInfo, error) {
	query := url.Values{"path": {file}}
	if executable {
		query.Set("executable", "true")
	}
	return write(ctx, c, treePath, query, "", content)
}

// Write writes a file as a whole, once under a key.
func (c *Client) Write(ctx context.Context, key, file string, content []byte) (*protocol.FileInfo, error) {
	return write(ctx, c, "/v1/files", url.Values{"path": {file}}, key, content)
}

func write(ctx context.Context, c *Client, path string, query url.Values, key string, content []byte) (
	*protocol.FileInfo, error) {
	if len(content) > protocol.MaxFileBytes {
		return nil, &protocol.Error{Code: protocol.TooLarge, Message: fmt.Sprintf(
			"the content has %d bytes, and %d are the most", len(content), protocol.MaxFileBytes)}
	}
	info, err := send[protocol.FileInfo](ctx, c, request{method: http.MethodPut, path: path,
		query: query, key: key, body: content, bodyType: "application/octet-stream",
		wait: contentTime}, nil)
	if err != nil {
		return nil, err
	}
	info.Path = cutPath(info.Path)
	return info, nil
}

// Edit makes all edits or none, once under a key.
func (c *Client) Edit(ctx context.Context, key string, r protocol.EditRequest) (*protocol.EditResponse, error) {
	got, err := send[protocol.EditResponse](ctx, c, request{method: http.MethodPost, path: "/v1/edits", key: key}, r)
	if err != nil {
		return nil, err
	}
	for i := range got.Files {
		got.Files[i].Path = cutPath(got.Files[i].Path)
	}
	return got, nil
}

// Search finds files by name, and lines of them by content.
func (c *Client) Search(ctx context.Context, r protocol.SearchRequest) (*protocol.SearchResponse, error) {
	search := request{method: http.MethodPost, path: "/v1/search", wait: contentTime}
	got, err := send[protocol.SearchResponse](ctx, c, search, r)
	if err != nil {
		return nil, err
	}
	for i := range got.Matches {
		got.Matches[i].Path = cutPath(got.Matches[i].Path)
	}
	return got, nil
}

// cutPath bounds a path, which stays exact, as it may be part of the next request.
func cutPath(path string) string { return clip.Bytes(path, maxPath) }
