// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package boot

import "strings"

// The lines that Run writes to its progress writer begin with one of these. Ready is a whole line and the last one;
// so is a line with Failed, whose rest is the reason with its line breaks as "\r".
const (
	Step   = "step "
	Ready  = "ready"
	Failed = "failed "
)

// oneLine makes an error fit one line; Reason turns it back.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "\r") }

// Reason is the text of a line with Failed.
func Reason(line string) string {
	return strings.ReplaceAll(strings.TrimPrefix(line, Failed), "\r", "\n")
}
