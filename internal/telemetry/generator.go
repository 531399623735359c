// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Generator is the metrics of a generator. A nil one measures nothing.
type Generator struct {
	running                  prometheus.Gauge
	firstPart, callDuration  *prometheus.HistogramVec
	toolDuration, resultSize *prometheus.HistogramVec
	tokens, toolCalls        *prometheus.CounterVec
	refused, dropped, lost   *prometheus.CounterVec
	bounds                   bounds
}

// NewGenerator registers a generator's metrics. It panics if the registry has some of them already.
func NewGenerator(registry prometheus.Registerer) *Generator {
	m := metrics{registry}
	return &Generator{
		running: m.gauge(MetricAttemptsRunning, "Attempts under way in this pod.").WithLabelValues(),
		firstPart: m.histogram(MetricTimeToFirstPart, "Time from a model call to the first part of its reply.", bucketsFirst,
			LabelProvider),
		callDuration: m.histogram(MetricModelCallDuration,
			"Duration of model calls: Completed, Interrupted, Abandoned or Failed; reply is how the reply ended, such as "+
				"Complete or MaxTokensReached.", bucketsCall, LabelProvider, LabelOutcome, LabelReply),
		tokens: m.counter(MetricTokens,
			"Tokens as providers count them: input (neither from nor into a cache), cache_read, cache_write, output, and "+
				"reasoning, which is a part of output.", LabelProvider, LabelKind),
		toolCalls: toolCalls(m),
		toolDuration: m.histogram(MetricToolCallDuration,
			"Duration of the calls of tools that generation pods run; advisor is the call of the model of the advisor.",
			bucketsTool, LabelTool),
		resultSize: m.histogram(MetricToolResultSize,
			"Size of the results of tools, as the model gets them; those of clients when it reads them first.", bucketsSize,
			LabelTool),
		refused: refusedResults(m),
		dropped: droppedParts(m),
		lost: m.counter(MetricLostRecordings,
			"Recordings of model calls that were not written: QueueFull, Timeout, NameConflict, Fault, or the reason of the "+
				"API server.", LabelReason),
	}
}

func droppedParts(m metrics) *prometheus.CounterVec {
	return m.counter(MetricDroppedParts,
		"Live parts that were dropped; replies are not affected.",
		LabelBy)
}

// AttemptBegan counts an attempt as running until the returned function is called.
func (g *Generator) AttemptBegan() (ended func()) {
	if g == nil {
		return func() {}
	}
	g.running.Inc()
	return g.running.Dec
}

// FirstPart counts how long a model call took to yield its first part.
func (g *Generator) FirstPart(provider string, after time.Duration) {
	if g != nil {
		g.firstPart.WithLabelValues(g.bounds.provider.of(provider)).Observe(seconds(after))
	}
}

// CallEnded counts a model call. Reply is how the reply ended, if there was one.
func (g *Generator) CallEnded(provider, outcome, reply string, lasted time.Duration) {
	if g != nil {
		g.callDuration.WithLabelValues(g.bounds.provider.of(provider), outcome, reply).Observe(seconds(lasted))
	}
}

// Tokens counts tokens of one kind.
func (g *Generator) Tokens(provider, kind string, n int64) {
	if g != nil && n > 0 {
		g.tokens.WithLabelValues(g.bounds.provider.of(provider), kind).Add(float64(n))
	}
}

// ToolCalled counts a call of a tool, how long it took and, in bytes, what came of it.
// tool is the name of a built-in one, ToolOfMCP or ToolOfClient.
func (g *Generator) ToolCalled(tool, outcome string, size int, lasted time.Duration) {
	if g == nil {
		return
	}
	tool = g.bounds.tool.of(tool)
	g.toolCalls.WithLabelValues(tool, outcome).Inc()
	g.toolDuration.WithLabelValues(tool).Observe(seconds(lasted))
	g.resultSize.WithLabelValues(tool).Observe(float64(size))
}

// ClientResult counts, in bytes, a result of a tool that a client ran. The manager counts the call.
func (g *Generator) ClientResult(size int) {
	if g != nil {
		g.resultSize.WithLabelValues(ToolOfClient).Observe(float64(size))
	}
}

// ToolDenied counts calls that a person did not allow.
func (g *Generator) ToolDenied(tool string) {
	if g != nil {
		g.toolCalls.WithLabelValues(g.bounds.tool.of(tool), CallDenied).Inc()
	}
}

// ResultRefused counts a result that the API server did not take.
func (g *Generator) ResultRefused(reason string) {
	if g != nil {
		g.refused.WithLabelValues(g.bounds.reason.of(reason)).Inc()
	}
}

// RecordingLost counts a recording of a model call that was not written.
func (g *Generator) RecordingLost(reason string) {
	if g != nil {
		g.lost.WithLabelValues(g.bounds.reason.of(reason)).Inc()
	}
}

// PartsDropped counts live parts that did not reach the relay.
func (g *Generator) PartsDropped(n int64) {
	if g != nil && n > 0 {
		g.dropped.WithLabelValues(ByGenerator).Add(float64(n))
	}
}
