// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"

	"parley.dev/parley/api/v1alpha1"
)

const leftOutForSize = "[left out: the recording would be too large]"

// fit makes a recording as small as it must be, by what is missed least: bodies of older attempts, bodies of this one,
// which say once more what request and response say, the prompt, the tools, the reply.
func fit(rec *v1alpha1.DebugRecording) {
	for _, leaveOut := range leavingOut(rec) {
		if size(rec) <= v1alpha1.MaxDebugStepBytes {
			return
		}
		leaveOut()
	}
}

func size(rec *v1alpha1.DebugRecording) int {
	raw, err := json.Marshal(rec)
	if err != nil {
		return 0 // Cannot happen: the API's types can be encoded.
	}
	return len(raw)
}

// leavingOut are the ways to make the recording smaller, in their order. After the last it always fits.
func leavingOut(rec *v1alpha1.DebugRecording) []func() {
	r, newest := &rec.Request, len(rec.Attempts)-1
	return []func(){
		func() { leaveBodiesOut(rec.Attempts[:newest]) },
		func() { leaveBodiesOut(rec.Attempts[newest:]) },
		func() { shorten(r.Messages, oldTextRunes) },
		func() {
			r.OmittedMessages += int32(len(r.Messages))
			r.Messages = nil
		},
		func() { r.Tools, r.Options = nil, leftOutForSize },
		func() { rec.Attempts = rec.Attempts[len(rec.Attempts)-1:] },
		func() {
			for i := range rec.Attempts[0].Exchanges {
				e := &rec.Attempts[0].Exchanges[i]
				e.RequestHeaders, e.ResponseHeaders = nil, nil
			}
		},
		func() {
			if rec.Response != nil {
				rec.Response.Parts, rec.Response.Warnings = nil, nil
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
