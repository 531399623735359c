// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"strings"

	"charm.land/fantasy"
)

// Names of the tools that providers run themselves. A call offers one by a fantasy.ProviderDefinedTool.
const (
	WebSearch     = "web_search"
	CodeExecution = "code_execution"
)

// Args of a WebSearch among those of its fantasy.ProviderDefinedTool; each can be absent.
const (
	// AllowedDomains and BlockedDomains are []string.
	AllowedDomains = "allowedDomains"
	BlockedDomains = "blockedDomains"
	// City, Region, Country and Timezone are of the user's place: strings.
	City     = "city"
	Region   = "region"
	Country  = "country"
	Timezone = "timezone"
)

// Function is a tool that Parley runs, with the schema of its arguments as the provider takes it.
type Function struct {
	Name, Description string
	Schema            map[string]any
}

// Functions are the tools of a call that Parley runs. fit is a function of package schema; nil: the provider takes
// every schema. The warnings name what it omitted.
func Functions(call *fantasy.Call, fit func(map[string]any) (map[string]any, []string)) (all []Function,
	warnings []fantasy.CallWarning) {
	for _, tool := range call.Tools {
		function, ok := tool.(fantasy.FunctionTool)
		if !ok {
			continue
		}
		f := Function{function.Name, function.Description, function.InputSchema}
		if fit != nil {
			var left []string
			if f.Schema, left = fit(f.Schema); len(left) > 0 {
				warnings = append(warnings, Unsupported("inputSchema",
					fmt.Sprintf("of tool %s the provider does not take %s", f.Name, strings.Join(left, ", "))))
			}
		}
		all = append(all, f)
	}
	return all, warnings
}

// OfProvider is the tool of that name that the provider is to run; nil: the call has none.
func OfProvider(call *fantasy.Call, name string) *fantasy.ProviderDefinedTool {
	for _, tool := range call.Tools {
		if own, ok := tool.(fantasy.ProviderDefinedTool); ok && own.Name == name {
			return &own
		}
	}
	return nil
}

// Unsupported is a warning about a setting that a request omits.
func Unsupported(setting, why string) fantasy.CallWarning {
	return fantasy.CallWarning{Type: fantasy.CallWarningTypeUnsupportedSetting, Setting: setting, Details: why}
}
