// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing makes the spans of turns, steps, model calls and tool calls, and exports them over OTLP.
//
// One turn is one trace, made in several processes: pods make the spans of steps and calls, the manager that of the
// turn when it ends. They need no word of each other, because the ids of turns and steps follow from the chat's UID and
// the fence. So a restart may lose a span, but a span that is made twice is the same span.
// Nothing here waits for a collector.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"golang.org/x/time/rate"

	"parley.dev/parley/internal/telemetry"
)

// scope names what makes the spans.
const scope = "parley.dev/parley"

// ShutdownPatience is how long the last spans may take to go out when a program ends: 5 seconds.
const ShutdownPatience = 5 * time.Second

// warnEvery bounds how often trouble with the collector is logged.
const warnEvery = time.Minute

// Tracer makes spans. Make one with New or Off.
type Tracer struct {
	tracer   trace.Tracer
	shutdown func(context.Context) error
	on       bool
	content  bool
}

// Off returns a tracer that makes no spans.
func Off() *Tracer {
	return &Tracer{tracer: noop.NewTracerProvider().Tracer(scope), shutdown: func(context.Context) error { return nil }}
}

// Service is the program that makes the spans. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override it.
type Service struct {
	// Name of the program, such as parley-manager.
	Name string
	// Namespace and Pod that it runs in, if that is known.
	Namespace, Pod string
}

// New returns a tracer as the standard OTEL_* environment variables say: off unless OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set. It fails if they ask for another protocol than http/protobuf,
// or cannot be used.
func New(ctx context.Context, service Service, log *slog.Logger) (*Tracer, error) {
	if !wanted() {
		return Off(), nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := os.Getenv(name); protocol != "" && protocol != "http/protobuf" {
			return nil, fmt.Errorf("%s is %q, but traces are exported over http/protobuf alone: name an OTLP/HTTP endpoint, "+
				"as a rule port 4318", name, protocol)
		}
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("setting up the export of traces: %w", err)
	}
	what, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(service.attributes()...),
		resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("reading OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetErrorHandler(&complaints{log: log, sometimes: rate.Sometimes{Interval: warnEvery}})
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter), sdktrace.WithIDGenerator(ids{}), sdktrace.WithResource(what),
	)
	// The provider is not made the global one: libraries would put spans with URLs of providers into the turns.
	return &Tracer{tracer: provider.Tracer(scope), shutdown: provider.Shutdown, on: true, content: capturesContent()}, nil
}

func wanted() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") ||
		strings.EqualFold(os.Getenv("OTEL_TRACES_EXPORTER"), "none") {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

func capturesContent() bool { return strings.EqualFold(os.Getenv(telemetry.EnvCaptureContent), "true") }

func (s Service) attributes() []attribute.KeyValue {
	attributes := []attribute.KeyValue{attribute.String("service.name", s.Name)}
	for key, value := range map[string]string{telemetry.AttrNamespace: s.Namespace, telemetry.AttrPod: s.Pod,
		"service.instance.id": s.Pod} {
		if value != "" {
			attributes = append(attributes, attribute.String(key, value))
		}
	}
	return attributes
}

// On reports whether spans are made.
func (t *Tracer) On() bool { return t.on }

// Content reports whether spans may hold what was said.
func (t *Tracer) Content() bool { return t.content }

// Close sends what is left, for at most ShutdownPatience. Spans that do not make it are lost, which is no error.
func (t *Tracer) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ShutdownPatience)
	defer cancel()
	if err := t.shutdown(ctx); err != nil {
		otel.Handle(err)
	}
}

// complaints logs trouble with the collector, once in a while.
type complaints struct {
	log       *slog.Logger
	sometimes rate.Sometimes
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	c.sometimes.Do(func() { c.log.Warn("traces are not exported", slog.Any("error", err)) })
}
