// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"slices"
	"testing"
)

func TestGitWorksInDirectoriesOfTheKubelet(t *testing.T) {
	t.Parallel()
	const trusts = "GIT_CONFIG_VALUE_0=*"
	for name, c := range map[string]struct {
		container []string
		want      bool
	}{
		"as it is":                      {[]string{"HOME=/workspace"}, true},
		"where the template configures": {[]string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.name"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := environment(c.container, "/workspace", forAgents, trustFiles(c.container))
			if slices.Contains(got, trusts) != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
