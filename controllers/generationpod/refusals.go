// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package generationpod

import (
	"sync"
	"time"

	"parley.dev/parley/internal/pods/placement"
)

// refusals remembers in which namespaces the API server refuses generation pods, so that not each chat asks for itself.
// The zero value is ready.
type refusals struct {
	mu sync.Mutex
	in map[string]*placement.RefusedError
}

// of is why the namespace gets no pod now; nil if that has to be tried.
func (r *refusals) of(namespace string, now time.Time) *placement.RefusedError {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.in[namespace]; e != nil && now.Before(e.Until) {
		return e
	}
	delete(r.in, namespace)
	return nil
}

func (r *refusals) put(namespace string, e *placement.RefusedError) *placement.RefusedError {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.in == nil {
		r.in = map[string]*placement.RefusedError{}
	}
	r.in[namespace] = e
	return e
}
