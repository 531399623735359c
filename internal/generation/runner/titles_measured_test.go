// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/test/kit/collector"
)

func TestACallForATitleIsMeasuredAndPartOfTheStepsTrace(t *testing.T) {
	o := startObserved(t, entitles(titleOfPods))
	o.configureTitles()
	c := o.newChat("c", nil)
	c.config = "alone"
	c.ask("one", longQuestion)
	if g := c.result().Spec.Generation; g.TitleSource != v1alpha1.TitleFromModel || g.TitleCall.Model.Config != "alone" ||
		g.TitleCall.Cost != nil {
		t.Errorf("got %q from %q, call %+v", g.Title, g.TitleSource, g.TitleCall)
	}
	o.stop()
	wantSeries(t, o.metrics, map[string]float64{
		`parley_attempts_running`: 0,
		`parley_time_to_first_part_seconds{provider="openai-compatible"}`:                                        2,
		`parley_model_call_duration_seconds{outcome="Completed",provider="openai-compatible",reply="Complete"}`:  1,
		`parley_model_call_duration_seconds{outcome="Completed",provider="openai-compatible",reply="ToolCalls"}`: 1,
		`parley_tokens_total{kind="input",provider="openai-compatible"}`:                                         40 + 10,
		`parley_tokens_total{kind="output",provider="openai-compatible"}`:                                        8 + 5,
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
	if title, step := byAction["WriteTitle"], byAction["GenerateAssistant"]; title.ParentID != step.ID ||
		title.Attributes[telemetry.AttrStream] != "true" ||
		title.Attributes[telemetry.AttrInputTokens] != "40" || title.Attributes[telemetry.AttrOutcome] != "Completed" {
		t.Errorf("the title's span is %+v", title)
	}
}

func TestACallForATitleIsAccountedForOnceThoughNobodyHearsOfItsResult(t *testing.T) {
	t.Parallel()
	p := titling(t, entitles(titleOfPods), &order{titleFirst: true})
	heard := make(chan struct{})
	p.wire.onCreate(func(r *http.Request, through http.RoundTripper) (*http.Response, error) {
		response, err := cutAfter(r, through)
		<-heard
		return response, err
	})
	c := p.newTitledChat("c", nil)
	c.ask("one", longQuestion)
	m := c.result()
	c.wantTitle(m, "Stuck pods", v1alpha1.TitleFromModel, true)
	c.accept(m)
	c.ask("two", "And then?")
	c.wantTitle(c.result(), "", "", false)
	close(heard)
}

func TestACallForATitleIsAccountedForLaterIfItsResultWasRefused(t *testing.T) {
	t.Parallel()
	p := titling(t, entitles(titleOfPods), &order{titleFirst: true})
	p.wire.onCreate(answers(422, metav1.StatusReasonInvalid))
	c := p.newTitledChat("c", nil)
	c.ask("one", longQuestion)
	c.wantTitle(c.result(), "Stuck pods", v1alpha1.TitleFromModel, false)
	c.write(func(s *v1alpha1.ChatStatus) { s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 2) })
	c.wantTitle(c.result(), "Stuck pods", v1alpha1.TitleFromModel, true)
}
