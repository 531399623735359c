// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"slices"
	"strings"
)

// ownPrefix is that of the agent's own settings, which commands do not get.
const ownPrefix = "PARLEY_"

// forAgents tells programs that an agent runs them: no pagers, no editors, no colors, no questions. An editor that does
// nothing accepts the text as it was proposed.
var forAgents = []string{
	"AI_AGENT=parley", "AGENT=parley",
	"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "GH_PAGER=cat", "AWS_PAGER=",
	"EDITOR=true", "VISUAL=true", "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true",
	"TERM=dumb", "NO_COLOR=1",
	"GIT_TERMINAL_PROMPT=0", "DEBIAN_FRONTEND=noninteractive",
}

// trustFiles lets git work in directories that the kubelet has made: they belong to root, and to the group of the
// commands. A template that configures git by its environment keeps that.
func trustFiles(container []string) []string {
	if slices.ContainsFunc(container, func(v string) bool { return strings.HasPrefix(v, "GIT_CONFIG_COUNT=") }) {
		return nil
	}
	return []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}
}

// environment is that of a command: of the variables that have the same name the last one counts. PWD is the directory
// that it runs in, since the container's would be wrong.
func environment(container []string, dir string, more ...[]string) []string {
	values := slices.DeleteFunc(slices.Clone(container), func(v string) bool { return strings.HasPrefix(v, ownPrefix) })
	values = append(values, "PWD="+dir)
	for _, some := range more {
		values = append(values, some...)
	}
	at := map[string]int{}
	var result []string
	for _, value := range values {
		name, _, _ := strings.Cut(value, "=")
		if i, ok := at[name]; ok {
			result[i] = value
			continue
		}
		at[name] = len(result)
		result = append(result, value)
	}
	return result
}

// variable is the value of a variable; ok reports whether there is one.
func variable(environment []string, name string) (value string, ok bool) {
	for _, v := range environment {
		if value, ok = strings.CutPrefix(v, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
