// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package builtin has the tools that need neither the workspace nor the cluster.
package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
	_ "time/tzdata" // The image has no time zones of its own.

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

// CurrentTime is the tool that returns the time.
type CurrentTime struct {
	// Now returns the current time.
	Now func() time.Time
}

type timeResult struct {
	Time     string `json:"time" doc:"The time, RFC 3339."`
	Timezone string `json:"timezone" doc:"The time zone."`
	Weekday  string `json:"weekday" doc:"The day of the week, in English."`
}

// Definition implements tools.Tool.
func (CurrentTime) Definition() tools.Definition {
	return tools.Definition{
		Name:        string(v1alpha1.BuiltInCurrentTime),
		Description: "Tells the current date and time. Call it whenever the answer depends on what time it is now.",
		InputSchema: map[string]any{
			"type": "object",
			"properties": map[string]any{
				"timezone": map[string]any{
					"type":        "string",
					"default":     "UTC",
					"description": "IANA name of a time zone, such as Europe/Berlin.",
				},
			},
		},
		Traits: tools.Traits{Plan: tools.Free, Explore: tools.Free, Repeatable: true},
		Reference: tools.Reference{
			Offered: "every chat", Result: timeResult{},
			Errors: []string{"The time zone is not known; the error says how names of time zones look."},
			Limits: []string{"The time is the generation pod's."},
		},
	}
}

// Run returns the time as JSON: RFC 3339, the weekday and the zone.
func (t CurrentTime) Run(_ context.Context, call tools.Call) (string, error) {
	var arguments struct {
		Timezone string `json:"timezone"`
	}
	if err := json.Unmarshal([]byte(call.Input), &arguments); err != nil {
		return "", fmt.Errorf("reading the arguments: %w", err)
	}
	zone, err := time.LoadLocation(arguments.Timezone)
	if err != nil {
		return "", fmt.Errorf("timezone %q is not known; use an IANA name such as Europe/Berlin", arguments.Timezone)
	}
	now := t.Now().In(zone)
	return tools.Encode(timeResult{
		Time: now.Format(time.RFC3339), Timezone: zone.String(), Weekday: now.Weekday().String()})
}
