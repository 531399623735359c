// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"testing"

	"parley.dev/parley/test/kit/check"
)

func TestAQuotationOfThePromptIsNoticed(t *testing.T) {
	private := []string{"short secret", "The merger with Acme will be announced on the first of May."}
	for said, want := range map[string]bool{
		"Unsupported parameter: 'temperature' is not supported with this model.": false,
		"Invalid content: short secret":                                          true,
		"Could not process 'with Acme will be announced on the first'":           true,
		`Could not process: the\nMERGER with\tacme will`:                         true,
		"The merger of two lists failed.":                                        false,
		"":                                                                       false,
	} {
		check.Equal(t, said, want, quotes(said, private))
	}
}
