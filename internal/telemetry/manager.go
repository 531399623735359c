// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Manager is the manager's metrics. A nil one measures nothing.
type Manager struct {
	chats, waits                *prometheus.GaugeVec
	oldest                      *oldestWaits
	turns, attempts             *prometheus.CounterVec
	turnDuration, stepDuration  *prometheus.HistogramVec
	queueWait, capacityWait     *prometheus.HistogramVec
	commitLatency               *prometheus.HistogramVec
	rejected, refused, toolCall *prometheus.CounterVec
	retries, compactions        *prometheus.CounterVec
	archived                    *prometheus.CounterVec
	bounds                      bounds
}

// NewManager registers the manager's metrics. It panics if the registry has some of them already.
func NewManager(registry prometheus.Registerer) *Manager {
	m, oldest := metrics{registry}, newOldestWaits()
	registry.MustRegister(oldest)
	return &Manager{
		oldest: oldest,
		chats:  m.gauge(MetricChats, "Chats by phase; New: not read yet.", LabelPhase),
		waits:  m.gauge(MetricWaits, "Chats that wait, by what ends the wait (status.wait.for).", LabelFor),
		turns: m.counter(MetricTurns,
			"Turns that ended: Answered, MaxTokensReached, Refused, StoppedAfterTool, MaxStepsReached, Interrupted, Failed "+
				"with the reason of the error, Superseded by an edit or a deletion.", LabelResult,
			LabelReason),
		turnDuration: m.histogram(MetricTurnDuration,
			"Time from the start of a turn to its end, waits for people included.", bucketsTurn, LabelResult),
		queueWait: m.histogram(MetricQueueWait,
			"Time from the creation of a user message, which has whole seconds, to the start of its turn.", bucketsWait),
		capacityWait: m.histogram(MetricCapacityWait,
			"Time that a step waited for a generation slot.", bucketsWait),
		attempts: m.counter(MetricAttempts,
			"Attempts at steps that ended: Completed, Failed with the reason of the error, Interrupted, Lost with their pod, "+
				"Abandoned because a newer attempt replaced them.",
			LabelAction, LabelOutcome, LabelReason),
		stepDuration: m.histogram(MetricStepDuration,
			"Time from the assignment of the attempt that succeeded to the commit of its step; its count is the number of "+
				"steps.", bucketsCall, LabelAction),
		commitLatency: m.histogram(MetricCommitLatency,
			"Time from the end of an attempt, by the clock of its pod, to the commit of its result.", bucketsCommit),
		rejected: m.counter(MetricRejectedMessages,
			"Messages of people and clients that were refused: QueueFull, ResultsInvalid.",
			LabelReason),
		retries: m.counter(MetricRetries, "Failed attempts that are retried, with the same model or another one.",
			LabelProvider, LabelReason),
		compactions: m.counter(MetricCompactions,
			"Compactions by the model for the summary: success, error with its reason, cancelled.",
			LabelProvider, LabelModel, LabelResult, LabelReason),
		archived: m.counter(MetricArchivedChats,
			"Chats that were written to object storage before their deletion, by result: success or error.", LabelResult),
		refused:  refusedResults(m),
		toolCall: toolCalls(m),
	}
}

func refusedResults(m metrics) *prometheus.CounterVec {
	return m.counter(MetricRefusedResults,
		"Results that were not committed: FenceMovedOn if they came too late, else the reason of the API server.",
		LabelReason)
}

func toolCalls(m metrics) *prometheus.CounterVec {
	return m.counter(MetricToolCalls,
		"Tool calls: Succeeded, Failed, Interrupted, Denied, Canceled. Those of MCP servers count as mcp, those of clients "+
			"and of unknown tools as client.",
		LabelTool, LabelOutcome)
}

// Chats adds n to the number of chats in the phase; empty is New.
func (m *Manager) Chats(phase string, n int) {
	if m == nil {
		return
	}
	if phase == "" {
		phase = NewChat
	}
	m.chats.WithLabelValues(phase).Add(float64(n))
}

// WaitBegan counts a chat as one that has waited for that since a time. Chat is any name that no other chat has.
func (m *Manager) WaitBegan(what, chat string, since time.Time) {
	if m != nil {
		m.waits.WithLabelValues(what).Inc()
		m.oldest.add(what, chat, since)
	}
}

// WaitEnded counts a chat that WaitBegan has counted no longer.
func (m *Manager) WaitEnded(what, chat string) {
	if m != nil {
		m.waits.WithLabelValues(what).Dec()
		m.oldest.remove(what, chat)
	}
}

// TurnBegan counts how long the message had waited.
func (m *Manager) TurnBegan(waited time.Duration) {
	if m != nil {
		m.queueWait.WithLabelValues().Observe(seconds(waited))
	}
}

// TurnEnded counts a turn that lasted so long; zero if that is not known.
func (m *Manager) TurnEnded(result, reason string, lasted time.Duration) {
	if m == nil {
		return
	}
	m.turns.WithLabelValues(result, m.bounds.reason.of(reason)).Inc()
	if lasted > 0 {
		m.turnDuration.WithLabelValues(result).Observe(lasted.Seconds())
	}
}

// CapacityCame counts how long a step waited for a place.
func (m *Manager) CapacityCame(waited time.Duration) {
	if m != nil {
		m.capacityWait.WithLabelValues().Observe(seconds(waited))
	}
}

// AttemptEnded counts an attempt.
func (m *Manager) AttemptEnded(action, outcome, reason string) {
	if m != nil {
		m.attempts.WithLabelValues(action, outcome, m.bounds.reason.of(reason)).Inc()
	}
}

// StepCommitted counts a step that was committed so long after it was assigned, and after its attempt had ended.
func (m *Manager) StepCommitted(action string, assigned, finished time.Duration) {
	if m == nil {
		return
	}
	m.stepDuration.WithLabelValues(action).Observe(seconds(assigned))
	m.commitLatency.WithLabelValues().Observe(seconds(finished))
}

// Retried counts a failed attempt that is made again, by the provider that it failed at and the reason.
func (m *Manager) Retried(provider, reason string) {
	if m != nil {
		m.retries.WithLabelValues(m.bounds.provider.of(provider), m.bounds.reason.of(reason)).Inc()
	}
}

// Compacted counts a compaction by what wrote the summary, or was to; result is one of the Compaction constants, and
// reason is why it failed.
func (m *Manager) Compacted(provider, model, result, reason string) {
	if m != nil {
		m.compactions.WithLabelValues(m.bounds.provider.of(provider), m.bounds.model.of(model), result,
			m.bounds.reason.of(reason)).Inc()
	}
}

// Archived counts a chat that was archived, or was not; result is one of the Archive constants.
func (m *Manager) Archived(result string) {
	if m != nil {
		m.archived.WithLabelValues(result).Inc()
	}
}

// MessageRejected counts a message of a person or a client that was refused.
func (m *Manager) MessageRejected(reason string) {
	if m != nil {
		m.rejected.WithLabelValues(m.bounds.reason.of(reason)).Inc()
	}
}

// ResultRefused counts a result of an attempt that was no longer awaited.
func (m *Manager) ResultRefused(reason string) {
	if m != nil {
		m.refused.WithLabelValues(m.bounds.reason.of(reason)).Inc()
	}
}

// ClientCalls counts n calls of tools that clients run, which ended with the outcome.
func (m *Manager) ClientCalls(outcome string, n int) {
	if m != nil && n > 0 {
		m.toolCall.WithLabelValues(ToolOfClient, outcome).Add(float64(n))
	}
}

// seconds of a wait that two clocks have measured: never below zero.
func seconds(d time.Duration) float64 { return max(0, d.Seconds()) }
