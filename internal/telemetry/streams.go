// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Relay has the figures of a relay. They are read at each scrape.
type Relay struct {
	// Dropped is the number of parts that found no room since the start.
	Dropped func() int64
	// Held is the number of bytes that episodes hold.
	Held func() int64
	// Streams is the number of readers.
	Streams func() int64
	// Refused is the number of readers that were refused since the start, because of their tokens or because the relay was
	// full.
	Refused func() int64
}

// RegisterRelay registers a relay's metrics.
func RegisterRelay(registry prometheus.Registerer, relay Relay) {
	registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: MetricDroppedParts, ConstLabels: prometheus.Labels{LabelBy: ByRelay},
			Help: "Live parts that were dropped; replies are not affected.",
		}, func() float64 { return float64(relay.Dropped()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: MetricRelayHeld, Help: "Bytes of live parts that the relay holds.",
		}, func() float64 { return float64(relay.Held()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: MetricRelayReaders, Help: "Streams that gateways read from the relay; it takes 1000.",
		}, func() float64 { return float64(relay.Streams()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: MetricRelayRefused, Help: "Streams that the relay refused, by the reader's token or because it is full.",
		}, func() float64 { return float64(relay.Refused()) }),
	)
}

// Gateway is the metrics of a gateway. A nil one measures nothing.
type Gateway struct {
	bounds          bounds
	open            prometheus.Gauge
	opened          prometheus.Counter
	relayFailures   prometheus.Counter
	ended, refusals *prometheus.CounterVec
}

// NewGateway registers a gateway's metrics. It panics if the registry has some of them already.
func NewGateway(registry prometheus.Registerer) *Gateway {
	m := metrics{registry}
	return &Gateway{
		open:   m.gauge(MetricStreamsOpen, "Streams that clients are following.").WithLabelValues(),
		opened: m.counter(MetricStreamsOpened, "Streams that were begun.").WithLabelValues(),
		ended: m.counter(MetricStreamsEnded,
			"Streams that ended: Over with their chat, ClientLeft, ClientTooSlow, or a reason of closing.", LabelReason),
		refusals: m.counter(MetricRefusals, "Requests for streams that were refused.", LabelReason),
		relayFailures: m.counter(MetricRelayFailures,
			"Reads of live parts from relays that failed. The gateway repeats them.").WithLabelValues(),
	}
}

// StreamOpened counts a stream as open until the returned function is called with the reason of its end.
func (g *Gateway) StreamOpened() (closed func(reason string)) {
	if g == nil {
		return func(string) {}
	}
	g.opened.Inc()
	g.open.Inc()
	return func(reason string) {
		g.open.Dec()
		g.ended.WithLabelValues(g.bounds.reason.of(reason)).Inc()
	}
}

// RelayFailed counts a read of live parts from a relay that failed.
func (g *Gateway) RelayFailed() {
	if g != nil {
		g.relayFailures.Inc()
	}
}

// Refused counts a request for a stream that was refused.
func (g *Gateway) Refused(reason string) {
	if g != nil {
		g.refusals.WithLabelValues(g.bounds.reason.of(reason)).Inc()
	}
}
