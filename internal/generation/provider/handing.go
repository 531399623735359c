// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
)

// handingModel hands files to a provider by their URLs. fantasy only has content; so that a file's content is random bytes
// that stand for its URL, and the transport puts the URL in their place. Nothing that is said can be such bytes: they are
// drawn anew for each request.
//
// A provider that refuses one of the files, or cannot fetch it, is asked again without it: like any other file that cannot
// be had, it is no error, and the model reads why it is not there.
type handingModel struct {
	fantasy.LanguageModel
	about   Subject
	refused *refusals
}

func newHandingModel(model fantasy.LanguageModel, spec *v1alpha1.ChatModelConfigSpec) fantasy.LanguageModel {
	return &handingModel{LanguageModel: model, about: Subject{Spec: spec}, refused: &refusals{now: time.Now}}
}

// Stream implements fantasy.LanguageModel.
func (m *handingModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	h := m.handover(call.Prompt)
	if h == nil {
		return m.LanguageModel.Stream(ctx, call)
	}
	stream, err := m.LanguageModel.Stream(h.request(ctx, &call))
	if err != nil {
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		for {
			refusal := m.forward(stream, h, yield)
			if refusal == nil {
				return
			}
			h.giveUp(*refusal)
			if stream, err = m.LanguageModel.Stream(h.request(ctx, &call)); err != nil {
				yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeError, Error: err})
				return
			}
		}
	}, nil
}

// forward hands the stream on. If it consists of an error about a file that was handed over, it returns what the provider
// said instead.
func (m *handingModel) forward(stream fantasy.StreamResponse, h *handover, yield func(fantasy.StreamPart) bool) (refusal *string) {
	begun := false
	for part := range stream {
		switch {
		case refusal != nil:
			continue // The end is waited for, so that the connection is given back.
		case begun, part.Type == fantasy.StreamPartTypeWarnings:
		case part.Type == fantasy.StreamPartTypeError:
			if refusal = m.refusal(part.Error, h); refusal != nil {
				continue
			}
		default:
			begun = true
			m.refused.add(h.givenUp())
			if !h.warn(yield) {
				return nil
			}
		}
		if !yield(part) {
			return nil
		}
	}
	return refusal
}

// Generate implements fantasy.LanguageModel.
func (m *handingModel) Generate(ctx context.Context, call fantasy.Call) (*fantasy.Response, error) {
	h := m.handover(call.Prompt)
	if h == nil {
		return m.LanguageModel.Generate(ctx, call)
	}
	for {
		response, err := m.LanguageModel.Generate(h.request(ctx, &call))
		if err == nil {
			m.refused.add(h.givenUp())
			response.Warnings = append(response.Warnings, h.warnings()...)
			return response, nil
		}
		refusal := m.refusal(err, h)
		if refusal == nil {
			return nil, err
		}
		h.giveUp(*refusal)
	}
}

// refusal is what the provider said if an error can be about a file that was handed over; else nil. That it minds another
// file, which it was given as content, shows when it does so without the URLs.
func (m *handingModel) refusal(err error, h *handover) *string {
	f := find(err, m.about)
	if !h.handsAny() || ruleOf(f).reason != v1alpha1.ErrorRequestRejected || !f.has(0, http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity) {
		return nil
	}
	if !f.says("download", "fetch", "url", "image", "pdf", "document", "file", "media") {
		return nil
	}
	return &f.said
}

// handedKey is where the URLs of a call are in its context.
type handedKey struct{}

// handingTransport writes the URLs of files into the requests of calls that hand some over. Other requests it sends as they
// are.
type handingTransport struct {
	next http.RoundTripper
	form wireForm
}

// RoundTrip implements http.RoundTripper.
func (t handingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	urls, ok := r.Context().Value(handedKey{}).(standIns)
	if !ok {
		return t.next.RoundTrip(r)
	}
	if r.Body == nil {
		return nil, fmt.Errorf("%w: it has no body", errNotHanded)
	}
	r, err := rewritten(r, func(body []byte) ([]byte, error) { return t.form.write(body, urls) })
	if err != nil {
		return nil, err
	}
	return t.next.RoundTrip(r)
}

// handing is the client with a handingTransport. It stands before a transport that records, so that what is recorded is what
// is sent.
func handing(client *http.Client, form wireForm) *http.Client {
	return through(client, func(next http.RoundTripper) http.RoundTripper { return handingTransport{next, form} })
}
