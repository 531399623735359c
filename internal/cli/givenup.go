// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"parley.dev/parley/api/v1alpha1"
)

// whyGivenUp is what is shown of tool calls that have no result.
var whyGivenUp = map[v1alpha1.CallsGivenUp]string{
	v1alpha1.CallsCancelled:   "a person cancelled them",
	v1alpha1.CallsInterrupted: "the turn was interrupted",
	v1alpha1.CallsTimedOut:    "they were not answered in time",
	v1alpha1.CallsFailed:      "an error ended the turn",
	v1alpha1.CallsEdited:      "the conversation was changed",
}

// gaveUp shows once why the calls of the newest reply have no result:
// the status tells it first, and then what follows the reply.
func (p *printer) gaveUp(why v1alpha1.CallsGivenUp) {
	if why != "" && why != p.givenUp {
		if said, known := whyGivenUp[why]; known {
			p.note("tool calls were given up: %s", said)
		} else {
			p.note("tool calls were given up: %q", string(why))
		}
	}
	p.givenUp = why
}
