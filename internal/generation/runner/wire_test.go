// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fault answers a request in place of the API server; nil: the request goes through.
type fault func(r *http.Request, through http.RoundTripper) (*http.Response, error)

// wire is the way between a pod and the API server: it counts requests and can make them fail.
type wire struct {
	mu    sync.Mutex
	next  http.RoundTripper
	count map[string]int
	// fault is asked before each request. nil: the request goes through.
	fault fault
}

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	w.next, w.count = next, map[string]int{}
	return w
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.count[kindOf(r)]++
	fault := w.fault
	w.mu.Unlock()
	if fault != nil {
		if response, err := fault(r, w.next); response != nil || err != nil {
			return response, err
		}
	}
	return w.next.RoundTrip(r)
}

// kindOf is the verb and the resource, such as "get chatmessages".
func kindOf(r *http.Request) string {
	_, path, _ := strings.Cut(r.URL.Path, "/namespaces/")
	_, path, _ = strings.Cut(path, "/")
	resource, name, _ := strings.Cut(path, "/")
	verb := "list"
	switch {
	case r.Method == http.MethodPost:
		verb = "create"
	case r.URL.Query().Get("watch") != "":
		verb = "watch"
	case name != "":
		verb = "get"
	}
	return verb + " " + resource
}

// requests is how often something was asked since the last call with the same argument.
func (w *wire) requests(kind string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.count[kind]
	delete(w.count, kind)
	return n
}

// onCreate makes the first creates of messages fail, one by each fault.
func (w *wire) onCreate(faults ...fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := make(chan fault, len(faults))
	for _, fault := range faults {
		next <- fault
	}
	w.fault = func(r *http.Request, through http.RoundTripper) (*http.Response, error) {
		if kindOf(r) != "create chatmessages" {
			return nil, nil
		}
		select {
		case fault := <-next:
			return fault(r, through)
		default:
			return nil, nil
		}
	}
}

// answers is a fault: the API server answers with a status.
func answers(code int, reason metav1.StatusReason) fault {
	return refuses(code, reason, "quoting the reply: Paris")
}

// refuses is a fault: the API server answers with an error and its message.
func refuses(code int, reason metav1.StatusReason, message string) fault {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		body, err := json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: int32(code), Reason: reason, Message: message,
		})
		return &http.Response{
			StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(bytes.NewReader(body)),
		}, err
	}
}

var errCut = errors.New("the connection was cut")

// cutBefore is a fault: the request never arrives.
func cutBefore(*http.Request, http.RoundTripper) (*http.Response, error) { return nil, errCut }

// cutAfter is a fault: the request is carried out, and nobody hears of it.
func cutAfter(r *http.Request, through http.RoundTripper) (*http.Response, error) {
	response, err := through.RoundTrip(r)
	if err == nil {
		_ = response.Body.Close()
	}
	return nil, errCut
}
