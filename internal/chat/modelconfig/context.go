// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelconfig

import (
	"regexp"
	"strings"

	"parley.dev/parley/api/v1beta1"
)

// Limit is how many tokens a model's context holds, and where that is known from.
// The zero Limit is one that is not known.
type Limit struct {
	Tokens int64
	Source v1beta1.ContextLimitSource
}

// ContextLimit is how many tokens the context of the configuration's model holds: as spec.contextLimit says, or else as
// the provider said when it refused one, or else as it is known of the model. learned can be of another configuration;
// nil: nothing was learned.
func ContextLimit(config *v1beta1.ChatModelConfig, learned *v1beta1.LearnedContextLimit) Limit {
	spec := &config.Spec
	switch {
	case spec.ContextLimit != nil:
		return Limit{*spec.ContextLimit, v1beta1.ContextLimitConfigured}
	case learned != nil && learned.ModelConfig == config.Name && learned.Model == spec.Model:
		return Limit{learned.Tokens, v1beta1.ContextLimitRefusal}
	}
	if tokens := knownLimit(spec.Provider, spec.Model); tokens > 0 {
		return Limit{tokens, v1beta1.ContextLimitKnownModel}
	}
	return Limit{}
}

// makersOf are the makers whose models a provider names without the maker; empty: it names the maker, too. How much a
// server of one's own holds is how it was started, whatever the model could.
var makersOf = map[v1beta1.ModelProvider]string{
	v1beta1.ProviderAnthropic: "anthropic", v1beta1.ProviderBedrock: "", v1beta1.ProviderOpenAI: "openai",
	v1beta1.ProviderAzure:  "openai",
	v1beta1.ProviderGoogle: "google", v1beta1.ProviderOpenRouter: "", v1beta1.ProviderVercel: "",
}

var (
	// region is how inference profiles of Bedrock begin.
	region = regexp.MustCompile(`^(us|us-gov|eu|apac|au|jp|ca|global)\.`)
	// maker is how a name begins that says who made the model.
	maker = regexp.MustCompile(`^(anthropic|openai|google)[./]`)
	// edition is how a name ends that says which edition of a model is meant. They hold the same.
	edition = regexp.MustCompile(
		`(-latest|-\d{8}|-\d{4}-\d{2}-\d{2}|-preview(-\d{2}-\d{2,4})?|-exp|-\d{3,4}|-v\d+|[:@][a-z0-9.-]+)$`)
)

// knownLimit is how many tokens the context of a model holds by the table; 0: it is not in it.
func knownLimit(provider v1beta1.ModelProvider, model string) int64 {
	by, ok := makersOf[provider]
	if !ok {
		return 0
	}
	name := region.ReplaceAllString(strings.TrimPrefix(strings.ToLower(model), "models/"), "")
	if m := maker.FindString(name); m != "" && (by == "" || strings.HasPrefix(m, by)) {
		by, name = m[:len(m)-1], name[len(m):]
	}
	if by == "anthropic" { // Gateways write claude-sonnet-4.5.
		name = strings.ReplaceAll(name, ".", "-")
	}
	for {
		if tokens := knownLimits[by][name]; tokens > 0 {
			return tokens
		}
		at := edition.FindStringIndex(name)
		if at == nil {
			return 0
		}
		name = name[:at[0]]
	}
}
