// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"parley.dev/parley/api/v1beta1"
)

// Hit is a message that a search has found.
type Hit struct {
	// Chat and Message are names.
	Chat    string `json:"chat"`
	Message string `json:"message"`
	// Role says whose message it is.
	Role      v1beta1.MessageRole `json:"role"`
	CreatedAt time.Time           `json:"createdAt"`
	// Excerpt is the text around the first word, on one line.
	Excerpt string `json:"excerpt"`
}

// SearchPage is a piece of a search.
type SearchPage struct {
	// Hits are the messages that have all words, in the order of their names.
	Hits []Hit `json:"hits"`
	// Messages is how many messages were searched for this piece.
	Messages int `json:"messages"`
	// Continue is the token of the next piece; empty: all messages were searched.
	Continue string `json:"continue"`
}

// Search searches messages for about a second. They must have all words of the query; words in double quotes stand
// together. next is the Continue of the piece before.
func Search(ctx context.Context, n Namespace, query, next string) (*SearchPage, error) {
	return call[SearchPage](ctx, n, http.MethodGet, url.Values{"q": {query}, "continue": {next}}, nil, "search")
}
