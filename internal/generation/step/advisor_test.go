// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

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
		// These fields go into the request as they are.
		"stored by the request's own field": {`{"extra_body":{"store":true,"seed":12345678901234567890},"user":"u"}`,
			`{"extra_body":{"seed":12345678901234567890},"user":"u"}`},
		"stored by both": {`{"store":true,"extra_body":{"store":true}}`, `{"extra_body":{}}`},
		"said twice": {`{"extra_body":{"store":true},"extra_body":{"store":true,"a":1}}`,
			`{"extra_body":{"a":1}}`},
		"an extra body that is no object": {`{"extra_body":5}`, `{"extra_body":5}`},
		"a field of another field's own": {`{"extra_body":{"options":{"store":true}}}`,
			`{"extra_body":{"options":{"store":true}}}`},
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
