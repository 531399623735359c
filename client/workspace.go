// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"
)

// perMiB is how much longer an operation may take for each MiB of its body.
const perMiB = 20 * time.Second

// ArchiveError is the PAX record of an entry of OpenWorkspace that could not be read. It says why.
const ArchiveError = "PARLEY.error"

// OpenWorkspace reads a file or directory in the workspace of a chat, at a path relative to the directory of the
// workspace, as a tar archive. A file has its own name there. The names of what is in a directory are relative to it,
// and it has the name "./". A read fails if the archive breaks off, or if the gateway sends nothing for a minute. The
// caller closes it.
func OpenWorkspace(ctx context.Context, n Namespace, chat, path string) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	silence := time.AfterFunc(maxSilence, func() { cancel(errSilent) })
	//nolint:bodyclose // The caller closes it.
	response, err := workspace(ctx, n, http.MethodGet, chat, url.Values{"path": {path}}, http.Header{}, nil)
	silence.Stop()
	if err != nil {
		defer cancel(nil)
		return nil, silentOr(ctx, err)
	}
	return &watched{body: response.Body, ctx: ctx, cancel: cancel, silence: silence}, nil
}

// watched is a body that fails if it is silent for too long. Only time within reads counts.
type watched struct {
	body    io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc
	silence *time.Timer
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	w.silence.Reset(maxSilence)
	defer w.silence.Stop()
	n, err := w.body.Read(p)
	return n, silentOr(w.ctx, err)
}

// Close implements io.Closer.
func (w *watched) Close() error {
	defer w.cancel(nil)
	return w.body.Close()
}

// silentOr is the error, or errSilent if that is its cause.
func silentOr(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// PutWorkspaceFile writes a file of at most 16 MiB in the workspace of a chat, at a path relative to the directory of
// the workspace. Missing directories are created. A file that is there keeps its mode. A context without a deadline
// gets one of a minute, and 20 s for each MiB, as gateways have.
func PutWorkspaceFile(ctx context.Context, n Namespace, chat, path string, content []byte, executable bool) error {
	ctx, cancel := bounded(ctx, operationTimeout+time.Duration(len(content)>>20)*perMiB)
	defer cancel()
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
