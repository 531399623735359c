// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package faultclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// transport sends the requests of a process.
type transport struct {
	process *Process
	next    http.RoundTripper
}

// timeout is the error of a request whose answer did not come in time.
type timeout struct{}

func (timeout) Error() string   { return "timed out awaiting the response" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

// RoundTrip sends the request, unless the process is dead or the fault wants it otherwise.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.process.alive.Err() != nil {
		return drop(req, ErrDead)
	}
	t.process.begins()
	w, writes := writeOf(req)
	if !writes {
		return t.send(req)
	}
	fault := t.process.count(w)
	if fault == nil {
		return t.send(req)
	}
	return t.strike(req, fault)
}

func (t *transport) strike(req *http.Request, f *Fault) (*http.Response, error) {
	if f.Dies {
		defer t.process.Kill()
	}
	if f.Before != nil {
		f.Before(req.Context())
	}
	switch f.Effect {
	case Fails:
		return drop(req, fmt.Errorf("sending the request: %w", syscall.ECONNREFUSED))
	case Conflicts:
		return conflict(req)
	case Passes:
		return t.send(req)
	}
	resp, err := t.send(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	// The server has acted once its answer is whole.
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return nil, err
	}
	return nil, timeout{}
}

// send sends the request for as long as the process lives; what is then under way is cut,
// and the server may have acted.
func (t *transport) send(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	//nolint:contextcheck // The process's life ends the request as well as the caller's context does.
	stop := context.AfterFunc(t.process.alive, func() { cancel(ErrDead) })
	release := func() { stop(); cancel(nil) }
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		release()
		return nil, err
	}
	resp.Body = &body{ReadCloser: resp.Body, release: release}
	if watch := req.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		resource, _ := target(req.URL.Path)
		if delay := t.process.watchDelay(resource); delay > 0 {
			resp.Body = newLagging(resp.Body, delay)
		}
	}
	return resp, nil
}

// body is the body of a response, and what must be let go with it.
type body struct {
	io.ReadCloser
	release func()
}

// Close closes the body and lets the rest go.
func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// drop is the end of a request that is not sent.
func drop(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close() // It was never read.
	}
	return nil, err
}

func conflict(req *http.Request) (*http.Response, error) {
	_, _ = drop(req, nil)
	content, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonConflict, Code: http.StatusConflict,
		Message: "the object has been modified; please apply your changes to the latest version and try again",
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a conflict: %w", err)
	}
	return &http.Response{
		Status: "409 Conflict", StatusCode: http.StatusConflict, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		ContentLength: int64(len(content)), Body: io.NopCloser(bytes.NewReader(content)),
	}, nil
}
