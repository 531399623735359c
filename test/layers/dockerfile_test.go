// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"os"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
)

// Releases are built otherwise, so that nothing else would show it.
func TestDockerfileCopiesWhatItCompiles(t *testing.T) {
	deps := map[string][]string{}
	for _, p := range packages(t) {
		deps[strings.TrimPrefix(p.ImportPath, module)] = append(p.Deps, p.ImportPath)
	}
	text, err := os.ReadFile("../../Dockerfile")
	check.OK(t, err)
	var copied, programs []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 3 && words[0] == "COPY" && words[1] == words[2] {
			copied = append(copied, words[1])
		}
		for _, word := range words {
			program, isProgram := strings.CutPrefix(word, "./")
			if !isProgram || deps[program] == nil {
				continue
			}
			programs = append(programs, program)
			for _, dep := range deps[program] {
				if path, own := strings.CutPrefix(dep, module); own && !under(path, copied...) {
					t.Errorf("%s needs %s, which no line before it copies", program, path)
				}
			}
		}
	}
	for _, program := range []string{"cmd/manager", "cmd/gateway", "test/scripted-model"} {
		if !slices.Contains(programs, program) {
			t.Errorf("%s is not among the programs %v", program, programs)
		}
	}
}
