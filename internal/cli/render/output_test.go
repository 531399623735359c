// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestWhatIsNamedIsNoFormat(t *testing.T) {
	var out bytes.Buffer
	o := &Output{IOStreams: genericiooptions.IOStreams{Out: &out}}
	err := o.Say("chat.parley.dev/100%d", nil, " %s", "50%s")
	if err != nil || out.String() != "chat.parley.dev/100%d 50%s\n" {
		t.Errorf("it says %q: %v", out.String(), err)
	}
}
