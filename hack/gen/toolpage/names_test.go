// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package toolpage

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// walk visits all of a YAML document.
func walk(node any, visit func(key string, value any)) {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			visit(key, value)
			walk(value, visit)
		}
	case []any:
		for _, value := range node {
			walk(value, visit)
		}
	}
}

func TestTheAPIKnowsTheNamesOfTheTools(t *testing.T) {
	raw, err := os.ReadFile("../../../config/crd/bases/parley.dev_chats.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd any
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		t.Fatal(err)
	}
	var rules []string
	walk(crd, func(key string, value any) {
		if rule, ok := value.(string); ok && key == "rule" && strings.Contains(rule, "'current_time'") {
			rules = append(rules, rule)
		}
	})
	if len(rules) < 2 { // A client may not take these names, and a policy may allow them.
		t.Errorf("%d rules know the tools", len(rules))
	}
	for _, tool := range builtIn() {
		for _, rule := range rules {
			if !strings.Contains(rule, "'"+tool.Definition().Name+"'") {
				t.Errorf("%s is unknown to the rule %s", tool.Definition().Name, rule)
			}
		}
	}
}

func TestTraitsOfToolsFitTogether(t *testing.T) {
	for _, tool := range builtIn() {
		d := tool.Definition()
		for problem, wrong := range map[string]bool{
			"a pod that dies loses its result":            !d.Repeatable && !d.Exclusive,
			"its calls are made again, and must not be":   d.Repeatable && d.AtMostOnce,
			"the message has no room for its file":        d.AttachesFile && !d.Exclusive,
			"its file is lost with the pod":               d.AttachesFile && !d.Repeatable,
			"a reply can change the workspace twice":      d.ChangeWorkspace != nil && !d.Exclusive,
			"an agent is not told again after a crash":    d.ChangeAgent != nil && !d.Repeatable,
			"it needs the workspace, and may not need it": d.NeedsWorkspace && d.MayNeedWorkspace != nil,
		} {
			if wrong {
				t.Errorf("%s: %s", d.Name, problem)
			}
		}
	}
}
