// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func TestCallsHaveAdviceAndTitle(t *testing.T) {
	named := func(name string) *v1beta1.ModelIdentity { return &v1beta1.ModelIdentity{Name: name} }
	reply, advisor, titles := named("r"), named("a"), named("t")
	spent := func(micros int64) *v1beta1.Cost { return &v1beta1.Cost{Currency: "USD", MicroUnits: micros} }
	check.Equal(t, "calls of a reply with a title", []Call{{reply, v1beta1.TokenUsage{InputTokens: 1}, spent(2)},
		{titles, v1beta1.TokenUsage{InputTokens: 3}, spent(4)}}, Calls(&v1beta1.MessageGeneration{Model: reply,
		Usage: &v1beta1.TokenUsage{InputTokens: 1}, Cost: spent(2), TitleCall: &v1beta1.CallAccount{Model: titles,
			Usage: v1beta1.TokenUsage{InputTokens: 3}, Cost: spent(4)}}))
	check.Equal(t, "calls of advice", []Call{{advisor, v1beta1.TokenUsage{InputTokens: 5}, spent(6)}},
		Calls(&v1beta1.MessageGeneration{AdvisorModel: advisor, AdvisorUsage: &v1beta1.TokenUsage{InputTokens: 5},
			Cost: spent(6)}))
	check.Equal(t, "calls of a message of a person", []Call(nil), Calls(nil))
}
