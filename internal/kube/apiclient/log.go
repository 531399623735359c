// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"k8s.io/klog/v2" //nolint:depguard // It gets the logger here.

	"parley.dev/parley/internal/kube/denial"
	"parley.dev/parley/internal/text/printable"
)

// NewLogger returns a logger that writes JSON, and has client-go use it.
func NewLogger(to io.Writer, level slog.Level) *slog.Logger {
	log := slog.New(logHandler{slog.NewJSONHandler(printable.JSONWriter(to), &slog.HandlerOptions{Level: level})})
	klog.SetSlogLogger(log)
	return log
}

// logHandler logs errors as warnings that are normal while the program stops, or while Parley is uninstalled: its
// programs can outlive what they need.
type logHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, record slog.Record) error {
	record.Attrs(func(attr slog.Attr) bool {
		if err, ok := attr.Value.Any().(error); ok && (errors.Is(err, context.Canceled) || denial.IsRemoval(err)) {
			record.Level = min(record.Level, slog.LevelWarn)
		}
		return true
	})
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }
