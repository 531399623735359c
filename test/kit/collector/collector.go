// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package collector is an OpenTelemetry collector for tests: it takes traces over OTLP/HTTP and keeps them.
package collector

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector keeps the spans that it was sent.
type Collector struct {
	mu    sync.Mutex
	spans []Span
}

// Span is a span as it came in.
type Span struct {
	Name, TraceID, ID, ParentID string
	Kind                        tracepb.Span_SpanKind
	Failed                      bool
	// Service that made the span.
	Service string
	// Attributes, each as text.
	Attributes map[string]string
	// Raw is everything that was sent of it.
	Raw string
	// Nanoseconds that it lasted.
	Nanoseconds int64
}

// Start starts a collector that lasts as long as the test, and names it to the SDK in the environment.
func Start(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	return c
}

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collectorpb.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
		http.Error(w, "not an export of traces", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range request.ResourceSpans {
		service := texts(from.Resource.Attributes)["service.name"]
		for _, scope := range from.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, Span{
					Name: s.Name, TraceID: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId),
					ParentID: hex.EncodeToString(s.ParentSpanId),
					Kind:     s.Kind, Failed: s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR, Service: service,
					Attributes: texts(s.Attributes), Raw: s.String(),
					Nanoseconds: int64(s.EndTimeUnixNano - s.StartTimeUnixNano), // No test lasts for centuries.
				})
			}
		}
	}
}

func texts(attributes []*commonpb.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range attributes {
		all[a.Key] = text(a.Value)
	}
	return all
}

func text(v *commonpb.AnyValue) string {
	if s, ok := v.Value.(*commonpb.AnyValue_StringValue); ok {
		return s.StringValue
	}
	_, value, _ := strings.Cut(strings.ReplaceAll(v.String(), "  ", " "), ":")
	return strings.Trim(value, " ")
}

// Spans are those that have come in, in their order.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Named are the spans of that name.
func (c *Collector) Named(name string) (found []Span) {
	for _, s := range c.Spans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}
