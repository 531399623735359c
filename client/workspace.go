// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
)

// ArchiveError is the PAX record of an entry of OpenWorkspace that could not be read. It says why.
const ArchiveError = "PARLEY.error"

// OpenWorkspace reads a file or directory in the workspace of a chat, at a path relative to the directory of the
// workspace, as a tar archive. A file has its own name there. The names of what is in a directory are relative to it,
// and it has the name "./". A read fails if the archive breaks off. The caller closes it.
func OpenWorkspace(ctx context.Context, n Namespace, chat, path string) (io.ReadCloser, error) {
	response, err := workspace(ctx, n, http.MethodGet, chat, url.Values{"path": {path}}, http.Header{}, nil)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// PutWorkspaceFile writes a file of at most 16 MiB in the workspace of a chat, at a path relative to the directory of
// the workspace. Missing directories are created. A file that is there keeps its mode.
func PutWorkspaceFile(ctx context.Context, n Namespace, chat, path string, content []byte, executable bool) error {
	query := url.Values{"path": {path}}
	if executable {
		query.Set("executable", "true")
	}
	// A refusal comes before the content is sent.
	header := http.Header{"Content-Type": {"application/octet-stream"}, "Expect": {"100-continue"}}
	response, err := workspace(ctx, n, http.MethodPut, chat, query, header, bytes.NewReader(content))
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func workspace(ctx context.Context, n Namespace, method, chat string, query url.Values, header http.Header,
	body io.Reader) (*http.Response, error) {
	path, err := n.path("chats", chat)
	if err != nil {
		return nil, err
	}
	return n.client.send(ctx, method, path+"/workspace", query, header, body)
}
