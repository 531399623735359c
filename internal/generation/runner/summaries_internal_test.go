// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"charm.land/fantasy"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/fence"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/debug"
	"parley.dev/parley/internal/telemetry/tracing"
)

// silentModel never answers.
type silentModel struct{ fantasy.LanguageModel }

func (silentModel) Generate(ctx context.Context, _ fantasy.Call) (*fantasy.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestNoSummaryIsAskedForOnceTheChatsNextAttemptHasBegun(t *testing.T) {
	for name, c := range map[string]struct {
		next *attempt
		want bool
	}{
		"nothing has begun":           {nil, true},
		"the next attempt is at work": {&attempt{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Runner{Options: Options{Log: slog.New(slog.DiscardHandler), Now: time.Now, Tracer: tracing.Off()}, attempts: map[string]*attempt{}}
			t.Cleanup(r.summaries.stop)
			chat := &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}}
			chat.Status.Turn = &v1alpha1.TurnStatus{SummarySource: v1alpha1.TurnSummaryFromState}
			chat.Status.Generation = &v1alpha1.GenerationStatus{Action: v1alpha1.ActionGenerateAssistant, Attempt: 1}
			config := &v1alpha1.ChatModelConfig{Spec: v1alpha1.ChatModelConfigSpec{
				Provider: v1alpha1.ProviderOpenAICompatible, TurnSummaries: &v1alpha1.CaptionSettings{},
			}}
			a := &attempt{
				Runner: r, chat: chat, fence: fence.Fence{ChatUID: "u", HistoryVersion: 1, Attempt: 1}, lasting: t.Context(),
				target: &target{config: config, model: silentModel{}}, recording: &debug.Recording{},
			}
			if c.next != nil {
				r.attempts["u"] = c.next
			}
			a.summarize(outcome{kind: v1alpha1.OutcomeCompleted, step: collect.Step{
				Parts: []v1alpha1.MessagePart{{Type: v1alpha1.PartText, Text: new("Done.")}},
			}}, &v1alpha1.MessageGeneration{})
			r.summaries.mu.Lock()
			defer r.summaries.mu.Unlock()
			if asked := r.summaries.asked["u"] != nil; asked != c.want {
				t.Errorf("a summary is asked for: %v", asked)
			}
		})
	}
}
