// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// documented is the column "tried again" of docs/reference/errors.md by reason.
func documented(t *testing.T) map[v1beta1.ErrorReason]string {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/reference/errors.md")
	check.OK(t, err)
	rows := map[v1beta1.ErrorReason]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| [^|]+ \\| ([^|]+) \\| [^|]+ \\| [^|]*\\|$").
		FindAllStringSubmatch(string(page), -1) {
		if _, ok := rows[v1beta1.ErrorReason(m[1])]; ok {
			t.Errorf("%s has two rows", m[1])
		}
		rows[v1beta1.ErrorReason(m[1])] = m[2]
	}
	return rows
}

func TestEveryReasonIsExplained(t *testing.T) {
	for _, r := range rules {
		for _, e := range []explanation{r.explanation, explanations[r.reason]} {
			if e != (explanation{}) && (e.wrong == "" || e.advice == "") || explanations[r.reason] == (explanation{}) {
				t.Errorf("%s is explained by %+v", r.reason, e)
			}
		}
	}
}

// What is wrong is told while a call is made again by itself, too.
func TestWhatIsWrongAsksNobodyToDoAnything(t *testing.T) {
	all := slices.Collect(maps.Values(explanations))
	for _, r := range rules {
		all = append(all, r.explanation)
	}
	toDo := regexp.MustCompile(`(?i)\b(send|wait|check|try|go on|start|name an|edit|delete)\b`)
	for _, e := range all {
		if toDo.MatchString(e.wrong) {
			t.Errorf("it says what to do: %s", e.wrong)
		}
	}
}

func TestEveryReasonIsOnThePage(t *testing.T) {
	types, err := os.ReadFile("../../../../api/v1beta1/error_types.go")
	check.OK(t, err)
	enum := regexp.MustCompile(`validation:Enum=(\S+)`).FindSubmatch(types)
	rows := documented(t)
	reasons := strings.Split(string(enum[1]), ";")
	for _, reason := range reasons {
		if rows[v1beta1.ErrorReason(reason)] == "" {
			t.Errorf("%s is not on the page", reason)
		}
	}
	check.Equal(t, "the page", len(rows), len(reasons))
}
