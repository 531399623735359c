// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/fantasy"
	"k8s.io/apimachinery/pkg/util/cache"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/wire"
)

// imagesKnownFor is how long the limit of images is remembered that a provider has reported: without that, each later
// call of a chat with more would be refused first.
const imagesKnownFor = time.Hour

// imageModel makes a call again with the newest of its images, if the provider refuses it for their number. Providers
// and servers have limits from none to hundreds, and all later calls of the chat would be refused, too.
type imageModel struct {
	fantasy.LanguageModel
	spec *v1beta1.ChatModelConfigSpec
	// limit has at most one entry: how many images the provider takes.
	limit *cache.LRUExpireCache
}

// Stream implements fantasy.LanguageModel.
func (m *imageModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	images := m.imagesIn(call.Prompt)
	if len(images) == 0 {
		return m.LanguageModel.Stream(ctx, call)
	}
	kept := len(images)
	if limit, known := m.limit.Get(""); known {
		kept = min(kept, limit.(int))
	}
	stream, err := wire.Retry(ctx, m.LanguageModel, withNewest(call, images, kept), func(err error) *fantasy.Call {
		limit, refused := fault.ImagesRefused(err, fault.Subject{Spec: m.spec})
		switch {
		case !refused || kept == 0:
			return nil
		case limit < kept:
			kept = limit
			m.limit.Add("", limit, imagesKnownFor)
		default: // The pages of documents count, too, or the limit is not known.
			kept /= 2
		}
		return new(withNewest(call, images, kept))
	})
	if err != nil {
		return nil, err
	}
	return wire.OnAccepted(stream, func() (warnings []fantasy.CallWarning) {
		if omitted := len(images) - kept; omitted > 0 {
			warnings = append(warnings, wire.Unsupported("images", fmt.Sprintf("%d of them: %s", omitted, whyOmitted(kept))))
		}
		return warnings
	}), nil
}

// imagePlace is the position of an image in a prompt.
type imagePlace struct{ message, part int }

// imagesIn are the images of a prompt, the oldest first. Claude counts documents as well.
func (m *imageModel) imagesIn(messages fantasy.Prompt) (images []imagePlace) {
	for i := range messages {
		for j, part := range messages[i].Content {
			if file, ok := part.(fantasy.FilePart); ok &&
				(IsClaude(m.spec.Provider) || strings.HasPrefix(file.MediaType, "image/")) {
				images = append(images, imagePlace{i, j})
			}
		}
	}
	return images
}

// withNewest is the call with the newest of its images. Of the others, the model reads why they are missing.
func withNewest(call fantasy.Call, images []imagePlace, kept int) fantasy.Call {
	call.Prompt = slices.Clone(call.Prompt)
	for _, at := range images[:len(images)-kept] {
		content := slices.Clone(call.Prompt[at.message].Content)
		file := content[at.part].(fantasy.FilePart)
		content[at.part] = prompt.Absent(file.Filename, file.MediaType, whyOmitted(kept))
		call.Prompt[at.message].Content = content
	}
	return call
}

func whyOmitted(kept int) string {
	if kept == 0 {
		return "the model takes no images"
	}
	return fmt.Sprintf("the model takes only %d at once, the newest ones", kept)
}
