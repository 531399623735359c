// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"context"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
)

// Subject is what a model was set up from.
type Subject struct {
	// Config of the model.
	Config *v1alpha1.ChatModelConfig
	// Key is the API key, which must be in no recording.
	Key string
	// Classify says of an error of a call what kind it is.
	Classify func(error) *v1alpha1.GenerationError
}

func (s *Subject) identity() v1alpha1.ModelIdentity {
	spec := &s.Config.Spec
	return v1alpha1.ModelIdentity{Config: s.Config.Name, Provider: string(spec.Provider), Name: spec.Model}
}

// Model returns the model, recording its calls. A nil recording records none.
func (rec *Recording) Model(next fantasy.LanguageModel, of Subject) fantasy.LanguageModel {
	if rec == nil {
		return next
	}
	return &model{LanguageModel: next, recording: rec, subject: of}
}

type model struct {
	fantasy.LanguageModel
	recording *Recording
	subject   Subject
}

// Stream implements fantasy.LanguageModel.
func (m *model) Stream(ctx context.Context, request fantasy.Call) (fantasy.StreamResponse, error) {
	c := m.recording.begin(&m.subject, ofCall(request))
	if c == nil {
		return m.LanguageModel.Stream(ctx, request)
	}
	stream, err := m.LanguageModel.Stream(c.context(ctx), request)
	if err != nil {
		c.failed(ctx, err)
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		for part := range stream {
			c.heard(ctx, &part)
			if !yield(part) {
				return
			}
		}
	}, nil
}

// heard takes a part of the stream.
func (c *call) heard(ctx context.Context, part *fantasy.StreamPart) {
	c.mu.Lock()
	c.reply.add(part)
	if part.Type == fantasy.StreamPartTypeFinish {
		c.endLocked(v1alpha1.DebugCompleted, nil)
	}
	c.mu.Unlock()
	if part.Type == fantasy.StreamPartTypeError {
		c.failed(ctx, part.Error)
	}
}
