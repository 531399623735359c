// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
)

// RequestsOf are the requests of the chat's annotations that have not been acted on.
func RequestsOf(chat *v1beta1.Chat) []Request {
	var requests []Request
	for _, kind := range v1beta1.RequestKinds() {
		token, ok := chat.Annotations[kind.Annotation()]
		token = clip.Bytes(token, maxToken)
		handled := slices.ContainsFunc(chat.Status.Requests, func(h v1beta1.HandledRequest) bool {
			return h.Kind == kind && h.Token == token
		})
		if ok && !handled {
			requests = append(requests, Request{Kind: kind, Token: token})
		}
	}
	return requests
}

// maxToken is the length of a token in bytes, as the API bounds it.
const maxToken = 128
