// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
)

// offered are the names of the tools in a request, in order.
func offered(t *testing.T, body []byte) (names []string) {
	t.Helper()
	var sent struct {
		Tools []struct{ Function struct{ Name string } }
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	for _, tool := range sent.Tools {
		names = append(names, tool.Function.Name)
	}
	slices.Sort(names)
	return names
}

func TestAnUnknownToolNamesThoseOnOffer(t *testing.T) {
	t.Parallel()
	for name, called := range map[string]string{"an unknown tool": "weather", "one that its server does not have": "s__weather"} {
		t.Run(name, func(t *testing.T) {
			p, spec := withEveryKind(t, calling(called, "{}"))
			c := p.newChat("asks", spec)
			c.ask("asks-1", "Weather?")
			reply := c.result()
			c.commit(reply, v1alpha1.ActionExecuteTools)
			got := c.result().Spec.Parts[0].ToolResult
			said, list, _ := strings.Cut(got.Output, "; the tools on offer are: ")
			names := strings.Split(list, ", ")
			slices.Sort(names)
			if want := offered(t, p.models.Requests()[0].Body); !got.IsError || !slices.Equal(names, want) ||
				said != fmt.Sprintf("tool %q does not exist", called) || !slices.Contains(want, "t__own") {
				t.Errorf("the result is %+v, and on offer are %q", got, want)
			}
		})
	}
}
