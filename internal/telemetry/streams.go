// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import "github.com/prometheus/client_golang/prometheus"

// RegisterRelay registers a relay's metrics. They are read when somebody asks: dropped is the number of parts that found no
// room since the start, held the bytes that episodes hold.
func RegisterRelay(registry prometheus.Registerer, dropped, held func() int64) {
	registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: MetricDroppedParts, ConstLabels: prometheus.Labels{LabelBy: ByRelay},
			Help: "Live parts that were not handed on, because their episode was full, closed or lost. Replies are none the worse.",
		}, func() float64 { return float64(dropped()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: MetricRelayHeld, Help: "Bytes of live parts that the relay holds.",
		}, func() float64 { return float64(held()) }),
	)
}

// Gateway is the metrics of a gateway. A nil one measures nothing.
type Gateway struct {
	open   prometheus.Gauge
	opened prometheus.Counter
}

// NewGateway registers a gateway's metrics. It panics if the registry has some of them already.
func NewGateway(registry prometheus.Registerer) *Gateway {
	m := metrics{registry}
	return &Gateway{
		open:   m.gauge(MetricStreamsOpen, "Streams of chats that clients are following.").WithLabelValues(),
		opened: m.counter(MetricStreamsOpened, "Streams of chats that were begun.").WithLabelValues(),
	}
}

// StreamOpened counts a stream as open until the returned function is called.
func (g *Gateway) StreamOpened() (closed func()) {
	if g == nil {
		return func() {}
	}
	g.opened.Inc()
	g.open.Inc()
	return g.open.Dec
}
