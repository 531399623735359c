// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"regexp"
	"strconv"
	"strings"
)

// off is how a model that thinks by default is told not to.
type off string

const (
	// offByDefault: it thinks only if it is told to.
	offByDefault off = ""
	offDisabled  off = "disabled"
	// offBetween: it still writes notes between calls of tools.
	offBetween off = "between_tools"
	// offNever: it always thinks.
	offNever off = "never"
)

// Claude is what a model takes, as the pages about what is new in each Claude say. The zero Claude is an earlier one,
// or a model of others whose server speaks the protocol.
type Claude struct {
	// Adaptive models take no budget for thinking, and none of temperature, topP and topK. They show no thoughts by
	// default.
	Adaptive bool
	// Unforced models cannot be forced to call a tool.
	Unforced bool
	off      off
}

// Thinks reports whether the model thinks by default.
func (c Claude) Thinks() bool { return c.off != offByDefault }

// AlwaysThinks reports whether the model cannot be told not to think.
func (c Claude) AlwaysThinks() bool { return c.off == offNever }

// claudeName has the family and the version of a model.
var claudeName = regexp.MustCompile(`claude-(opus|sonnet|haiku|fable|mythos)-(\d)(?:[-.](\d{1,2}))?(?:\D|$)`)

// claudes are the models of each family from which on something changed. The last one that a model is not older than
// applies.
var claudes = []struct {
	family       string
	major, minor int
	Claude
}{
	{"opus", 4, 7, Claude{Adaptive: true}},
	{"opus", 5, 0, Claude{Adaptive: true, off: offDisabled}},
	{"opus", 5, 5, Claude{Adaptive: true, Unforced: true, off: offNever}},
	{"sonnet", 5, 0, Claude{Adaptive: true, off: offDisabled}},
	{"sonnet", 5, 5, Claude{Adaptive: true, Unforced: true, off: offBetween}},
	{"haiku", 5, 0, Claude{Adaptive: true, off: offDisabled}},
	{"fable", 5, 0, Claude{Adaptive: true, off: offNever}},
	{"fable", 5, 1, Claude{Adaptive: true, Unforced: true, off: offNever}},
	{"mythos", 5, 0, Claude{Adaptive: true, off: offNever}},
	{"mythos", 5, 1, Claude{Adaptive: true, Unforced: true, off: offNever}},
}

// ClaudeOf is what the model of that name takes.
func ClaudeOf(name string) (c Claude) {
	name = strings.ToLower(name)
	parts := claudeName.FindStringSubmatch(name)
	if parts == nil {
		return Claude{Adaptive: strings.Contains(name, "claude-mythos-preview")}
	}
	major, _ := strconv.Atoi(parts[2])
	minor, _ := strconv.Atoi(parts[3]) // Without one, it is 0.
	for _, row := range claudes {
		if parts[1] == row.family && (major > row.major || major == row.major && minor >= row.minor) {
			c = row.Claude
		}
	}
	return c
}
