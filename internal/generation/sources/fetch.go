// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"parley.dev/parley/internal/generation/prompt"
)

const (
	// fetchTimeout bounds the fetching of one file.
	fetchTimeout = 15 * time.Second
	// maxRedirects is how often a host may send on to another of its own addresses.
	maxRedirects = 5
)

var (
	errElsewhere = errors.New("it redirects to another host")
	errTooOften  = errors.New("it redirects too often")
)

// left is what becomes of a URL that is not fetched here: the provider may fetch it itself, or the problem stands. nil:
// it is fetched here.
func (r *Reader) left(raw string) *prompt.File {
	target, err := url.Parse(raw)
	if err != nil || target.Host == "" || target.User != nil {
		return &prompt.File{Problem: "its URL is not valid"}
	}
	if r.options.Hosts.Names(target) {
		return nil
	}
	f := &prompt.File{Problem: fmt.Sprintf("host %s is none that files may be fetched from", target.Host)}
	if prompt.PublicURL(raw) {
		f.URL = raw
	} else {
		f.Problem += ", and providers are handed only https URLs of public hosts"
	}
	return f
}

// fetch is the content of a URL, or why there is none. The error of the HTTP client is not told: it can name addresses
// within the cluster.
func (r *Reader) fetch(ctx context.Context, raw string) prompt.File {
	if left := r.left(raw); left != nil {
		return *left
	}
	if data, ok := r.fetched.get(raw, r.options.Now()); ok {
		return prompt.File{Data: data}
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	data, err := r.read(ctx, raw)
	if err != nil {
		return prompt.File{Problem: said(err)}
	}
	r.fetched.put(raw, data, r.options.Now())
	return prompt.File{Data: data}
}

// problem is an error that the model may read.
type problem string

func (p problem) Error() string { return string(p) }

func said(err error) string {
	if p, ok := errors.AsType[problem](err); ok {
		return string(p)
	}
	for _, known := range []error{errElsewhere, errTooOften} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return "it could not be fetched in time"
	}
	return "it could not be fetched"
}

func (r *Reader) read(ctx context.Context, raw string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, raw, http.NoBody)
	if err != nil {
		return nil, err
	}
	target := request.URL
	client := *r.options.HTTP
	client.Jar = nil
	client.CheckRedirect = func(next *http.Request, before []*http.Request) error {
		switch {
		case next.URL.Host != target.Host || next.URL.Scheme != target.Scheme:
			return errElsewhere
		case len(before) > maxRedirects:
			return errTooOften
		}
		return nil
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // What was read is what counts.
	if response.StatusCode != http.StatusOK {
		return nil, problem(fmt.Sprintf("its host answered %d", response.StatusCode))
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, prompt.MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > prompt.MaxFileBytes {
		return nil, problem("it is larger than 3.5 MiB")
	}
	return data, nil
}
