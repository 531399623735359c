// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/clip"
)

// RequestsOf are the requests of the chat's annotations that have not been acted on.
func RequestsOf(chat *v1alpha1.Chat) []Request {
	var requests []Request
	for _, asked := range []struct {
		annotation string
		kind       v1alpha1.RequestKind
	}{
		{v1alpha1.AnnotationInterrupt, v1alpha1.RequestInterrupt},
		{v1alpha1.AnnotationClear, v1alpha1.RequestClear},
		{v1alpha1.AnnotationCompact, v1alpha1.RequestCompact},
		{v1alpha1.AnnotationTitle, v1alpha1.RequestTitle},
	} {
		token, ok := chat.Annotations[asked.annotation]
		token = clip.Bytes(token, maxToken)
		handled := slices.ContainsFunc(chat.Status.Requests, func(h v1alpha1.HandledRequest) bool {
			return h.Kind == asked.kind && h.Token == token
		})
		if ok && !handled {
			requests = append(requests, Request{Kind: asked.kind, Token: token})
		}
	}
	return requests
}

// maxToken is the length of a token in bytes, as the API bounds it.
const maxToken = 128
