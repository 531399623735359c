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
	"sync"
	"time"

	"parley.dev/parley/internal/generation/prompt"
)

const (
	fetchTimeout = 15 * time.Second // of one file
	maxRedirects = 5                // of a host to itself
	// keptFor is how long a fetched file is cached, because each step of a turn needs it, and keptBytes the size of the
	// cache.
	keptFor   = 10 * time.Minute
	keptBytes = 32 << 20
)

// notFetched is the file of a URL that the pod may not fetch: for the provider to fetch, or with a problem. nil: the
// pod may fetch it.
func (r *Reader) notFetched(raw string) *prompt.File {
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

// fetch is the content of a URL, or a problem. Errors of the HTTP client are not included, because they can contain
// addresses in the cluster.
func (r *Reader) fetch(ctx context.Context, raw string) prompt.File {
	if file := r.notFetched(raw); file != nil {
		return *file
	}
	if data, ok := r.fetched.get(raw, r.options.Now()); ok {
		return prompt.File{Data: data}
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	data, err := r.read(ctx, raw)
	if err != nil {
		return prompt.File{Problem: problemOf(err)}
	}
	r.fetched.put(raw, data, r.options.Now())
	return prompt.File{Data: data}
}

// tooLarge is the problem of a file of more than prompt.MaxFileBytes.
const tooLarge = "it is larger than 3.5 MiB"

// problem is an error that the model may read.
type problem string

// Error implements error.
func (p problem) Error() string { return string(p) }

func problemOf(err error) string {
	if p, ok := errors.AsType[problem](err); ok {
		return string(p)
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
			return problem("it redirects to another host")
		case len(before) > maxRedirects:
			return problem("it redirects too often")
		}
		return nil
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, problem(fmt.Sprintf("its host answered %d", response.StatusCode))
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, prompt.MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > prompt.MaxFileBytes {
		return nil, problem(tooLarge)
	}
	return data, nil
}

// kept caches fetched files. The zero value is empty.
type kept struct {
	mu      sync.Mutex
	entries map[string]content
	order   []string // of the URLs, oldest first
	bytes   int
}

type content struct {
	data []byte
	at   time.Time
}

func (k *kept) get(url string, now time.Time) ([]byte, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(now, keptBytes)
	c, ok := k.entries[url]
	return c.data, ok
}

// put adds a fetched file.
func (k *kept) put(url string, data []byte, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.entries[url]; ok || len(data) > keptBytes {
		return // It was fetched twice at the same time.
	}
	k.drop(now, keptBytes-len(data))
	if k.entries == nil {
		k.entries = map[string]content{}
	}
	k.entries[url] = content{data, now}
	k.order = append(k.order, url)
	k.bytes += len(data)
}

// drop removes expired files, and the oldest ones until at most limit bytes remain.
func (k *kept) drop(now time.Time, limit int) {
	for len(k.order) > 0 {
		oldest := k.entries[k.order[0]]
		if k.bytes <= limit && now.Sub(oldest.at) < keptFor {
			return
		}
		k.bytes -= len(oldest.data)
		delete(k.entries, k.order[0])
		k.order = k.order[1:]
	}
}
