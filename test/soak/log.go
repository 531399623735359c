// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// elapsed is a log whose lines begin with the time of day, to compare with other logs,
// and the time since the beginning.
type elapsed struct {
	mu    sync.Mutex
	began time.Time
	out   io.Writer
}

// Enabled implements slog.Handler.
func (*elapsed) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle implements slog.Handler.
func (e *elapsed) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %6.1f s  %s", r.Time.UTC().Format("15:04:05.000"), r.Time.Sub(e.began).Seconds(), r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	b.WriteString("\n")
	e.mu.Lock()
	defer e.mu.Unlock()
	_, err := io.WriteString(e.out, b.String())
	return err
}

// WithAttrs implements slog.Handler; the soak has no use for it.
func (e *elapsed) WithAttrs([]slog.Attr) slog.Handler { return e }

// WithGroup implements slog.Handler; the soak has no use for it.
func (e *elapsed) WithGroup(string) slog.Handler { return e }
