// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl

import (
	"context"
	"time"

	"charm.land/fantasy"
	"k8s.io/apimachinery/pkg/util/cache"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/wire"
)

const (
	// refusedFor is how long a URL that the provider has refused is omitted: each step of a turn has it.
	refusedFor = 10 * time.Minute
	// maxRefused is how many are remembered, far more than the chats of a pod have.
	maxRefused = 4096
)

// urlModel sends files to a provider by their URLs: the protocol writes the URL of a file part into the request. If the
// provider refuses one of the files, or cannot fetch it, the call is made again without it: like any other file that is
// not available, it is no error, and the model reads why it is missing.
type urlModel struct {
	fantasy.LanguageModel
	about fault.Subject
	// refused are the URLs that the provider has refused.
	refused *cache.LRUExpireCache
}

// Model returns the model, which makes calls again without files that its provider refuses, if it sends URLs of files.
func Model(model fantasy.LanguageModel, spec *v1beta1.ChatModelConfigSpec) fantasy.LanguageModel {
	if supportOf(spec) == nil {
		return model
	}
	return &urlModel{model, fault.Subject{Spec: spec}, cache.NewLRUExpireCache(maxRefused)}
}

func (m *urlModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	f := m.filesOf(call.Prompt)
	if len(f.files) == 0 {
		return m.LanguageModel.Stream(ctx, call)
	}
	stream, err := wire.Retry(ctx, m.LanguageModel, *f.request(&call), func(err error) *fantasy.Call {
		message, refused := fault.FileRefused(err, m.about)
		if !refused || len(f.omitted) == len(f.files) {
			return nil
		}
		f.omit(message)
		return f.request(&call)
	})
	if err != nil {
		return nil, err
	}
	return wire.OnAccepted(stream, func() []fantasy.CallWarning {
		m.remember(f)
		return f.warnings()
	}), nil
}

func (m *urlModel) isRefused(url string) bool {
	_, refused := m.refused.Get(url)
	return refused
}

// remember remembers what the call has found to be refused.
func (m *urlModel) remember(f *urlFiles) {
	for _, i := range f.omitted {
		if at := f.files[i].url; !m.isRefused(at) {
			m.refused.Add(at, nil, refusedFor)
		}
	}
}
