// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"charm.land/fantasy"
	"k8s.io/apimachinery/pkg/util/cache"
)

const (
	// refusedFor is how long reasoning is omitted that a provider has refused: each later call of the chat has it.
	refusedFor = 24 * time.Hour
	// maxRefused is how many pieces are remembered.
	maxRefused = 1 << 14
)

// reasoningModel makes calls again without reasoning that its provider rejects. It remembers what was refused: without
// that, each call would be refused first, and newer reasoning would be omitted, too.
type reasoningModel struct {
	fantasy.LanguageModel
	rejected func(*fantasy.Call, error) bool
	refused  *cache.LRUExpireCache
}

// RetryWithoutReasoning returns a model that makes a call again without the reasoning of former replies that the
// provider has signed or sealed, if rejected reports of its error that the history is rejected. A provider cannot
// decrypt the reasoning, such as after a change of the organisation. Or it has bound it to what came before, as Claude
// does from Fable 5.1 on, and the chat has other tools, instructions or files by then.
func RetryWithoutReasoning(model fantasy.LanguageModel,
	rejected func(*fantasy.Call, error) bool) fantasy.LanguageModel {
	return &reasoningModel{model, rejected, cache.NewLRUExpireCache(maxRefused)}
}

// Stream implements fantasy.LanguageModel.
func (r *reasoningModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	call.Prompt, _ = without(call.Prompt, r.isRefused)
	rest, omitted := without(call.Prompt, isSealed)
	if len(omitted) == 0 {
		return r.LanguageModel.Stream(ctx, call)
	}
	isAgain := false
	stream, err := Retry(ctx, r.LanguageModel, call, func(err error) *fantasy.Call {
		if isAgain || !r.rejected(&call, err) {
			return nil
		}
		again := call
		again.Prompt, isAgain = rest, true
		return &again
	})
	if err != nil {
		return nil, err
	}
	return OnAccepted(stream, func() []fantasy.CallWarning {
		if isAgain {
			r.remember(omitted)
		}
		return nil
	}), nil
}

func (r *reasoningModel) remember(parts []fantasy.MessagePart) {
	for _, part := range parts {
		r.refused.Add(keyOf(part), nil, refusedFor)
	}
}

func (r *reasoningModel) isRefused(part fantasy.MessagePart) bool {
	if !isSealed(part) {
		return false
	}
	_, refused := r.refused.Get(keyOf(part))
	return refused
}

func keyOf(part fantasy.MessagePart) [sha256.Size]byte {
	state := StateOf(part)
	return sha256.Sum256(append([]byte(state.Signature+"\n"), state.Item...))
}

// isSealed reports whether a part is reasoning that the provider checks.
func isSealed(part fantasy.MessagePart) bool {
	if part.GetType() != fantasy.ContentTypeReasoning {
		return false
	}
	state := StateOf(part)
	return state.Item != nil || state.Signature != ""
}

// without is a prompt without some parts, and what these are.
func without(prompt fantasy.Prompt, omit func(fantasy.MessagePart) bool) (rest fantasy.Prompt,
	omitted []fantasy.MessagePart) {
	rest = slices.Clone(prompt)
	for i := range rest {
		if !slices.ContainsFunc(rest[i].Content, omit) {
			continue
		}
		var kept []fantasy.MessagePart
		for _, part := range rest[i].Content {
			if omit(part) {
				omitted = append(omitted, part)
			} else {
				kept = append(kept, part)
			}
		}
		rest[i].Content = kept
	}
	return rest, omitted
}
