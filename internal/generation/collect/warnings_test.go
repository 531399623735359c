// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect_test

import (
	"fmt"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/test/kit/check"
)

func unsupported(setting, details string) fantasy.CallWarning {
	return fantasy.CallWarning{Type: fantasy.CallWarningTypeUnsupportedSetting, Setting: setting, Details: details}
}

func TestWarningsNameSettingsAsTheConfigurationDoes(t *testing.T) {
	reply := collect.NewAccumulator(v1alpha1.ProviderOpenAI, 1, nil)
	reply.Warn([]fantasy.CallWarning{unsupported("top_k", ""), unsupported("TopP", "not while it thinks")})
	reply.Add(&fantasy.StreamPart{Type: fantasy.StreamPartTypeWarnings, Warnings: []fantasy.CallWarning{
		unsupported("topK", ""), // the same once more
		unsupported("FrequencyPenalty", "never"),
		{Type: fantasy.CallWarningTypeOther, Message: "dropping empty user message"},
	}})
	want := []string{"topK was left out: the provider does not take it", "topP was left out: not while it thinks",
		"frequencyPenalty was left out: never"}
	check.Equal(t, "finish", want, reply.Finish().Warnings)
}

func TestWarningsFitIntoAMessage(t *testing.T) {
	reply := collect.NewAccumulator(v1alpha1.ProviderOpenAI, 1, nil)
	for i := range 40 {
		reply.Warn([]fantasy.CallWarning{unsupported(fmt.Sprint("s", i), strings.Repeat("é", 500))})
	}
	got := reply.Finish().Warnings
	check.Equal(t, "warnings", 16, len(got))
	for _, w := range got {
		if len(w) > 256 {
			t.Errorf("one has %d bytes", len(w))
		}
	}
}
