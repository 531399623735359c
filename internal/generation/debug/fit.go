// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"encoding/json"

	"parley.dev/parley/api/v1alpha1"
)

const leftOutForSize = "[left out: the recording would be too large]"

// fit makes a recording as small as it must be, by what is missed least: bodies of older attempts, bodies of this one,
// which say once more what request and response say, the prompt, the tools, the reply.
func fit(spec *v1alpha1.ChatDebugStepSpec) {
	for _, leaveOut := range leavingOut(spec) {
		if size(spec) <= v1alpha1.MaxDebugStepBytes {
			return
		}
		leaveOut()
	}
}

func size(spec *v1alpha1.ChatDebugStepSpec) int {
	raw, err := json.Marshal(spec)
	if err != nil {
		return 0 // Cannot happen: the API's types can be encoded.
	}
	return len(raw)
}

// leavingOut are the ways to make the recording smaller, in their order. After the last it always fits.
func leavingOut(spec *v1alpha1.ChatDebugStepSpec) []func() {
	r, newest := &spec.Request, len(spec.Attempts)-1
	return []func(){
		func() { leaveBodiesOut(spec.Attempts[:newest]) },
		func() { leaveBodiesOut(spec.Attempts[newest:]) },
		func() { shorten(r.Messages, oldTextRunes) },
		func() {
			r.OmittedMessages += int32(len(r.Messages))
			r.Messages = nil
		},
		func() { r.Tools, r.Options = nil, leftOutForSize },
		func() { spec.Attempts = spec.Attempts[len(spec.Attempts)-1:] },
		func() {
			for i := range spec.Attempts[0].Exchanges {
				e := &spec.Attempts[0].Exchanges[i]
				e.RequestHeaders, e.ResponseHeaders = nil, nil
			}
		},
		func() {
			if spec.Response != nil {
				spec.Response.Parts, spec.Response.Warnings = nil, nil
			}
		},
	}
}

func leaveBodiesOut(attempts []v1alpha1.DebugAttempt) {
	for i := range attempts {
		for j := range attempts[i].Exchanges {
			e := &attempts[i].Exchanges[j]
			for _, body := range []*string{&e.RequestBody, &e.ResponseBody} {
				if len(*body) > len(leftOutForSize) {
					*body = leftOutForSize
				}
			}
		}
	}
}

func shorten(messages []v1alpha1.DebugMessage, runes int) {
	for i := range messages {
		for j := range messages[i].Parts {
			messages[i].Parts[j].Text = shortened(messages[i].Parts[j].Text, runes)
		}
	}
}
