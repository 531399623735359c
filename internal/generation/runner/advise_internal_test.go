// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestAnAdviceIsNotStoredAtItsProvider(t *testing.T) {
	for name, c := range map[string]struct{ options, want string }{
		"nothing said":    {`{}`, `{}`},
		"stored":          {`{"store":true,"user":"u"}`, `{"user":"u"}`},
		"not stored":      {`{"store":false}`, `{}`},
		"another option":  {`{"user":"u"}`, `{"user":"u"}`},
		"what is no JSON": {`{`, `{`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := withoutStore(&runtime.RawExtension{Raw: []byte(c.options)}); string(got.Raw) != c.want {
				t.Errorf("got %s", got.Raw)
			}
		})
	}
	if withoutStore(nil) != nil {
		t.Error("options came from nowhere")
	}
}
