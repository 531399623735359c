// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"testing"

	"parley.dev/parley/api/v1alpha1"
)

func TestACallForATitleIsMeasuredAndInNoTrace(t *testing.T) {
	o := startObserved(t, entitles(titleOfPods))
	o.configureTitles()
	c := o.newChat("c", nil)
	c.config = "alone"
	c.ask("one", longQuestion)
	if g := c.result().Spec.Generation; g.TitleSource != v1alpha1.TitleFromModel || g.TitleCall.Model.Config != "alone" || g.TitleCall.Cost != nil {
		t.Errorf("got %q from %q, call %+v", g.Title, g.TitleSource, g.TitleCall)
	}
	o.stop()
	wantSeries(t, o.metrics, map[string]float64{
		`parley_attempts_running`: 0,
		`parley_time_to_first_part_seconds{provider="openai-compatible"}`:                      1,
		`parley_model_call_duration_seconds{outcome="Completed",provider="openai-compatible"}`: 2,
		`parley_tokens_total{kind="input",provider="openai-compatible"}`:                       40 + 10,
		`parley_tokens_total{kind="output",provider="openai-compatible"}`:                      8 + 5,
	})
	o.tracer.Close(t.Context())
	if spans := o.spans.Spans(); len(spans) != 2 {
		t.Errorf("the spans are %v", spans)
	}
}
