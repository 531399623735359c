// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestAlertsFireForProblemsAlone runs promtool, which reads the rules without the envelope of the Prometheus operator.
func TestAlertsFireForProblemsAlone(t *testing.T) {
	dir, source := t.TempDir(), filepath.Join(root, "config", "prometheus")
	text, err := os.ReadFile(filepath.Join(source, "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var resource struct{ Spec any }
	if err := yaml.Unmarshal(text, &resource); err != nil {
		t.Fatal(err)
	}
	rules, err := yaml.Marshal(resource.Spec)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(filepath.Join(source, "rules_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"rules.yaml": rules, "rules_test.yaml": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	promtool := exec.CommandContext(t.Context(), "promtool", "test", "rules", "rules_test.yaml")
	promtool.Dir = dir
	if output, err := promtool.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}
