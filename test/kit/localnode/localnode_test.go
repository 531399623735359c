// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package localnode

import (
	"fmt"
	"strings"
	"testing"
)

// skipped is a test that remembers why it was skipped.
type skipped struct {
	testing.TB
	why string
}

func (s *skipped) Helper()         {}
func (s *skipped) Skip(why ...any) { s.why = fmt.Sprint(why...) }

func TestLocalNodeTestsAreSkippedElsewhereWithReason(t *testing.T) {
	for value, says := range map[string]string{"1": "", "": "not the local one"} {
		t.Setenv(variable, value)
		s := &skipped{}
		if Needed(s); !strings.Contains(s.why, says) || (s.why == "") != (says == "") {
			t.Errorf("with %q it says %q", value, s.why)
		}
	}
}
