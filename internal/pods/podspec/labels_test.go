// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"maps"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
)

func TestLabelsAreAddedToGenerationPods(t *testing.T) {
	labels, err := ParseLabels("azure.workload.identity/use=true,team=a")
	check.OK(t, err)
	plain, labelled := Generation(Settings{}, "a").Labels, Generation(Settings{Labels: labels}, "a").Labels
	if labelled["azure.workload.identity/use"] != "true" || labelled["team"] != "a" ||
		labelled[LabelComponent] != ComponentGeneration || len(labelled) != len(plain)+2 {
		t.Errorf("got %v", labelled)
	}
	if labelled[LabelTemplate] == plain[LabelTemplate] {
		t.Error("pods without the labels stay")
	}
	if !maps.Equal(labels, map[string]string{"azure.workload.identity/use": "true", "team": "a"}) {
		t.Errorf("the settings were changed to %v", labels)
	}
}

func TestLabelsThatPodsCannotHaveAreRefused(t *testing.T) {
	for value, says := range map[string]string{
		"team":                              "is no list of labels",
		"team=a b":                          "is no list of labels",
		"=a":                                "is no list of labels",
		"parley.dev/component=workspace":    "is Parley's own",
		"app.kubernetes.io/component=other": "is Parley's own",
	} {
		if got, err := ParseLabels(value); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, %v", value, got, err)
		}
	}
}
