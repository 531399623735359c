// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Record is one request and what became of it.
type Record struct {
	Protocol Protocol `json:"protocol"`
	// Path of the request, with its query.
	Path string `json:"path"`
	// Rule is the name of the rule that answered; empty for a request that was refused.
	Rule string `json:"rule,omitempty"`
	// Status is the HTTP status of the answer.
	Status int `json:"status"`
	// Conversation and Call are what the rules matched on; see Facts. Empty and 0 for a request that was refused.
	Conversation string `json:"conversation,omitempty"`
	Call         int    `json:"call,omitempty"`
	// Arrived is when the header of the request had come; FirstPart when the first part of the reply was sent; Ended when
	// the answer was over. All count nanoseconds of the wall clock.
	Arrived   time.Time `json:"arrived"`
	FirstPart time.Time `json:"firstPart,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	// Parts is the number of parts that were sent, once the answer is over.
	Parts int `json:"parts"`
	// Aborted is true when the client went away before the end, at Ended.
	Aborted bool `json:"aborted"`
	// Header of the request. Over HTTP the values of keys are hidden.
	Header http.Header `json:"header"`
	// Body of the request, whole; null where it was given up for the sake of newer ones, see keptBodies.
	Body json.RawMessage `json:"body"`
}

// keptBodies is how many bytes of bodies are kept: those of any test, and no more than a demo's pod can hold.
const keptBodies = 256 << 20

// records keeps what was asked.
type records struct {
	mu      sync.Mutex
	all     []*Record
	changed chan struct{}
	// bodies is the size of the bodies from all[oldest] on; those before it are gone.
	bodies, oldest int
}

func (r *records) add(record *Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, record)
	for r.bodies += len(record.Body); r.bodies > keptBodies; r.oldest++ {
		r.bodies -= len(r.all[r.oldest].Body)
		r.all[r.oldest].Body = nil
	}
	r.ring()
}

// change changes a record while nobody reads it.
func (r *records) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	r.ring()
}

func (r *records) ring() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// wait is closed at the next change.
func (r *records) wait() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

func (r *records) snapshot() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Record, len(r.all))
	for i, record := range r.all {
		out[i] = *record
	}
	return out
}

func (r *records) forget() { r.change(func() { r.all, r.bodies, r.oldest = nil, 0, 0 }) }

// withoutKeys hides the values of headers that hold keys.
func withoutKeys(all []Record) []Record {
	for i := range all {
		header := all[i].Header.Clone()
		for _, name := range append([]string{"Authorization"}, keyHeaders...) {
			if header.Get(name) != "" {
				header.Set(name, "[hidden]")
			}
		}
		all[i].Header = header
	}
	return slices.Clip(all)
}
