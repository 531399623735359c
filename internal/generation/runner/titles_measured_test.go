// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/testing/collector"
)

func TestACallForATitleIsMeasuredAndPartOfTheStepsTrace(t *testing.T) {
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
	spans := o.spans.Spans()
	if len(spans) != 3 {
		t.Fatalf("the spans are %v", spans)
	}
	byAction := map[string]collector.Span{}
	for _, span := range spans {
		byAction[span.Attributes[telemetry.AttrAction]] = span
	}
	if title, step := byAction["WriteTitle"], byAction["GenerateAssistant"]; title.ParentID != step.ID || title.Attributes[telemetry.AttrStream] != "false" ||
		title.Attributes[telemetry.AttrInputTokens] != "40" || title.Attributes[telemetry.AttrOutcome] != "Completed" {
		t.Errorf("the title's span is %+v", title)
	}
}
