// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"parley.dev/parley/internal/tools"
)

// fit encodes the result that with returns for a text, cut to what the model of the chat can read. What JSON adds to a
// text is known once it is encoded, so that the first cuts may be too long.
func fit(a *access, text string, with func(text string) any) (string, error) {
	limit := tools.ResultLimitOf(a.call.Chat)
	most := limit
	for range 8 {
		encoded, err := tools.Encode(with(tools.Truncate(text, most)))
		if err != nil {
			return "", err
		}
		if len(encoded) <= limit {
			return encoded, nil
		}
		most = min(most, len(text)) * limit / len(encoded) * 9 / 10
	}
	return tools.Fit(a.call.Chat, most, func(most int) any { return with(tools.Truncate(text, most)) })
}
