// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"parley.dev/parley/hack/gen/markdown"
)

const alertRules = "config/prometheus/rules.yaml"

// Alerts renders the page that the runbook_url of each alert leads to.
func Alerts() ([]byte, error) {
	text, err := os.ReadFile(alertRules)
	if err != nil {
		return nil, err
	}
	var rule struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr, For    string
					Labels, Annotations map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &rule); err != nil {
		return nil, fmt.Errorf("reading %s: %w", alertRules, err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, generated, alertRules, "Alerts")
	b.WriteString("\n`config/prometheus` has these alerts for the Prometheus operator. [Metrics](metrics.md) lists what " +
		"they compare.\n")
	for _, group := range rule.Spec.Groups {
		for _, r := range group.Rules {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", r.Alert, r.Annotations["summary"])
			fmt.Fprintf(&b, "\nSeverity %s, after %s of:\n\n    %s\n\n%s", r.Labels["severity"], orAtOnce(r.For), r.Expr,
				markdown.Links(r.Annotations["description"]))
		}
	}
	return b.Bytes(), nil
}

func orAtOnce(duration string) string {
	if duration == "" {
		return "the first evaluation"
	}
	return duration
}
