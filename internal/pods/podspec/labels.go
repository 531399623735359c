// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// labelsOf are the labels of a generation pod. Parley's own cannot be replaced.
func labelsOf(s Settings) map[string]string {
	all := maps.Clone(s.Labels)
	if all == nil {
		all = map[string]string{}
	}
	all["app.kubernetes.io/name"], all["app.kubernetes.io/component"] = "parley", ComponentGeneration
	all[LabelComponent], all[LabelTemplate] = ComponentGeneration, s.Hash()
	return all
}

// ParseLabels reads further labels of generation pods: key=value, separated by commas. Parley's own are refused.
func ParseLabels(value string) (map[string]string, error) {
	set, err := labels.ConvertSelectorToLabelsMap(value)
	if err != nil {
		return nil, fmt.Errorf("%q is no list of labels such as azure.workload.identity/use=true: %w", value, err)
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if strings.HasPrefix(key, "parley.dev/") || key == "app.kubernetes.io/name" ||
			key == "app.kubernetes.io/component" {
			return nil, fmt.Errorf("the label %s is Parley's own: leave it out", key)
		}
	}
	return set, nil
}
