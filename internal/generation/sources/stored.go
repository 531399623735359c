// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/netguard/retry"
)

// Gateway is the gateway, which has the stored files.
type Gateway struct {
	// URL of the gateway, such as http://parley-gateway.parley-system.svc.
	URL string
	// TokenFile has the token for it, which the kubelet replaces.
	TokenFile string
	// HTTP makes the requests. It follows no redirect and uses no proxy, which would see the token.
	HTTP *http.Client
}

// GatewayError means that the gateway cannot be reached, or does not answer for a file.
type GatewayError struct{ Err error }

// Error implements error.
func (e *GatewayError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *GatewayError) Unwrap() error { return e.Err }

// answerError is the status of an answer of the gateway that says nothing about the file.
type answerError int

func (e answerError) Error() string { return fmt.Sprintf("the gateway answered %d", int(e)) }

// isFinal reports whether a retry at once would fail, too.
func isFinal(err error) bool {
	_, isProblem := errors.AsType[problem](err)
	status, isAnswer := errors.AsType[answerError](err)
	return isProblem || isAnswer && status < http.StatusInternalServerError && status != http.StatusTooManyRequests
}

// stored is the content of a stored file, or a problem. The error is a GatewayError.
func (r *Reader) stored(ctx context.Context, namespace, chat string, file *v1beta1.StoredFile) (prompt.File, error) {
	switch {
	case r.options.Gateway == nil:
		return prompt.File{Problem: "the installation stores no files"}, nil
	case file.Size > prompt.MaxFileBytes:
		return prompt.File{Problem: tooLarge}, nil
	}
	at := fmt.Sprintf("%s/v1beta1/namespaces/%s/chats/%s/files/%s", strings.TrimSuffix(r.options.Gateway.URL, "/"),
		url.PathEscape(namespace), url.PathEscape(chat), url.PathEscape(file.SHA256))
	if data, ok := r.fetched.get(at, r.options.Now()); ok {
		return prompt.File{Data: data}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	data, err := retry.Do(ctx, retry.APIServer, func(ctx context.Context) ([]byte, error) {
		return r.options.Gateway.read(ctx, at, file.SHA256)
	}, isFinal)
	if p, ok := errors.AsType[problem](err); ok {
		return prompt.File{Problem: string(p)}, nil
	}
	if err != nil {
		return prompt.File{}, &GatewayError{err}
	}
	r.fetched.put(at, data, r.options.Now())
	return prompt.File{Data: data}, nil
}

// read asks the gateway once.
func (g *Gateway) read(ctx context.Context, at, digest string) ([]byte, error) {
	token, err := os.ReadFile(g.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("reading the token for the gateway: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking the gateway: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	response, err := g.HTTP.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the gateway: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusNotFound:
		return nil, problem("it was not uploaded for this chat, or is deleted")
	case response.StatusCode != http.StatusOK:
		return nil, answerError(response.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, prompt.MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading a file from the gateway: %w", err)
	}
	if len(data) > prompt.MaxFileBytes {
		return nil, problem(tooLarge)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != digest {
		return nil, problem("its content is not what was uploaded")
	}
	return data, nil
}
