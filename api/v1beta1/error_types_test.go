// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
)

func TestMessageAndAdviceMakeOneText(t *testing.T) {
	for want, e := range map[string]v1beta1.GenerationError{
		"":                           {},
		"It is down":                 {Message: "It is down"},
		"Wait":                       {Advice: "Wait"},
		"It is down. Wait":           {Message: "It is down", Advice: "Wait"},
		"It said: Please wait. Wait": {Message: "It said: Please wait.", Advice: "Wait"},
		"It said: Why? Wait":         {Message: "It said: Why?", Advice: "Wait"},
		"It said: a long tale… Wait": {Message: "It said: a long tale…", Advice: "Wait"},
	} {
		if got := e.Text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
