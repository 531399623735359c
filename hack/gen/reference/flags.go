// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"parley.dev/parley/hack/gen/markdown"
)

// programs have flags, with who sets them.
var programs = []struct {
	name      string
	arguments []string
	about     string
}{
	{"manager", nil, "Set these in the Deployment `parley-manager`."},
	{"gateway", nil, "Set these in the Deployment `parley-gateway`."},
	{"generator", nil, "The manager sets these in generation pods."},
	{"relay", nil, "The manager sets these in generation pods."},
	{"workspace-agent", []string{"init"}, "The manager sets these in the pods of workspaces that it creates."},
}

// Flags renders the page of the flags of all programs but kubectl chat, from what they print for -help.
func Flags() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, generated, "cmd", "Flags")
	b.WriteString("\n`$NAME` is an environment variable.\n")
	for _, program := range programs {
		rows, err := flagRows(append([]string{"run", "./cmd/" + program.name}, program.arguments...))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", program.name, program.about)
		markdown.Table(&b, []string{"flag", "value", "meaning"}, rows)
	}
	return b.Bytes(), nil
}

// definition is a flag as package flag prints it: its name and what its value is, and the usage in the next line.
var definition = regexp.MustCompile(`(?m)^  -(\S+)(?: (\S+))?(?:\n    )?\t(.*)$`)

func flagRows(arguments []string) (rows [][]string, err error) {
	cmd := exec.Command("go", append(arguments, "-help")...) //nolint:noctx // It ends by itself.
	// Some defaults are variables of pods.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "POD_") || strings.HasPrefix(variable, "PARLEY_")
	})
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", cmd, err, text)
	}
	for _, found := range definition.FindAllStringSubmatch(string(text), -1) {
		value := found[2]
		if value != "" {
			value = markdown.Code(value)
		}
		rows = append(rows, []string{markdown.Code("--" + found[1]), value, markdown.Prose(found[3])})
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s prints no flags: %s", cmd, text)
	}
	return rows, nil
}
