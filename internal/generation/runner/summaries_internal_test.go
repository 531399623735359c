// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"charm.land/fantasy"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/captions"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/test/kit/check"
)

// silentModel never answers.
type silentModel struct {
	fantasy.LanguageModel
	asked atomic.Bool
}

func (m *silentModel) Stream(ctx context.Context, _ fantasy.Call) (fantasy.StreamResponse, error) {
	m.asked.Store(true)
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
			r := &Runner{options: Options{Log: slog.New(slog.DiscardHandler), Now: time.Now}, attempts: map[string]*attempt{}}
			observer := observe.New(observe.Options{Tracer: tracing.Off(), Now: time.Now})
			r.captions = captions.New(captions.Options{Observer: observer, Now: time.Now})
			chat := &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}}
			chat.Status.Turn = &v1alpha1.TurnStatus{SummarySource: v1alpha1.TurnSummaryFromState}
			config := &v1alpha1.ChatModelConfig{Spec: v1alpha1.ChatModelConfigSpec{
				Provider: v1alpha1.ProviderOpenAICompatible, TurnSummaries: &v1alpha1.CaptionSettings{},
			}}
			if c.next != nil {
				r.attempts["u"] = c.next
			}
			model := &silentModel{}
			a := r.newAttempt(chat, fence.Fence{ChatUID: "u", HistoryVersion: 1, Attempt: 1}, nil)
			a.summarize(t.Context(), &models.Target{Config: config, Model: model}, &v1alpha1.ChatMessageSpec{
				Parts: []v1alpha1.MessagePart{{Type: v1alpha1.PartText, Text: new("Done.")}},
				Generation: &v1alpha1.MessageGeneration{Outcome: v1alpha1.OutcomeCompleted,
					Action: v1alpha1.ActionGenerateAssistant},
			})
			r.captions.Stop()
			check.Equal(t, "a summary is asked for", c.want, model.asked.Load())
		})
	}
}
