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
	// Rule is the name of the rule that answered; empty for a request that was refused.
	Rule string `json:"rule,omitempty"`
	// Status is the HTTP status of the answer.
	Status int `json:"status"`
	// Arrived is when the request was read, FirstPart when the first part was sent, Ended when the answer was over.
	Arrived   time.Time `json:"arrived"`
	FirstPart time.Time `json:"firstPart,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	// ScriptedDelay is what the script made the first part wait.
	ScriptedDelay Duration `json:"scriptedDelay"`
	// Aborted is true when the client went away before the end.
	Aborted bool `json:"aborted"`
	// Header of the request. Over HTTP the values of keys are hidden.
	Header http.Header `json:"header"`
	// Body of the request, whole.
	Body json.RawMessage `json:"body"`
}

// records keeps what was asked.
type records struct {
	mu      sync.Mutex
	all     []*Record
	changed chan struct{}
}

func (r *records) add(record *Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, record)
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

func (r *records) forget() { r.change(func() { r.all = nil }) }

// withoutKeys hides the values of headers that hold keys.
func withoutKeys(all []Record) []Record {
	for i := range all {
		header := all[i].Header.Clone()
		for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
			if header.Get(name) != "" {
				header.Set(name, "[hidden]")
			}
		}
		all[i].Header = header
	}
	return slices.Clip(all)
}
