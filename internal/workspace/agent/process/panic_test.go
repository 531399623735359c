// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"log/slog"
	"os"
	"testing"
	"time"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

func TestPanicWhileCollectingOutputEndsItsCommandAlone(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Unix(1000, 0).UTC()
	s := store{dir: t.TempDir()}
	check.OK(t, s.open(t.Context()))
	l := &collector{stopped: make(chan struct{}), table: &table{store: s, options: Options{
		Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&log, nil)),
	}}}
	r := record{Process: protocol.Process{ID: "p1", State: protocol.Running}}
	check.OK(t, s.create(r))
	c := newCommand(r, newOutput(s.place("p1"), nil)) // It panics when it looks at its clock.
	c.output.refusals = 1
	read, write, err := os.Pipe()
	check.OK(t, err)
	_, err = write.WriteString("output")
	check.OK(t, err)
	l.collect(c, read)
	l.tasks.Wait()
	want := protocol.Process{ID: "p1", State: protocol.Lost, EndedAt: now, Note: noteFailed}
	check.Equal(t, "process", want, c.describe())
	saved, err := s.load("p1")
	check.OK(t, err)
	check.Equal(t, "record", want, saved.Process)
	check.Contains(t, log.String(), "A goroutine panicked", "collecting output")
	if _, err := write.WriteString("more"); err == nil {
		t.Error("its pipe is still open")
	}
	if c.current().runs() {
		t.Error("it counts as running")
	}
}
