// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"parley.dev/parley/internal/workspace/agent/process"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

var errEnough = errors.New("that is enough")

// Capture runs a program with the key as its input, and reads all of its output, or so many bytes. With a wait, the
// context ends then.
func (d *Service) Capture(ask Ask, reply *Reply) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err := d.Manager.Capture(ctx, &ask.Request, ask.Key, func(from io.Reader) (err error) {
		if ask.Limit == 0 {
			reply.Contents, err = io.ReadAll(from)
			return err
		}
		reply.Contents = make([]byte, ask.Limit)
		if _, err = io.ReadFull(from, reply.Contents); err == nil && ask.Wait == 0 {
			return errEnough
		}
		stop()
		return err
	})
	if failed, ok := errors.AsType[*process.ExitError](err); ok {
		reply.From, err = int64(failed.Code), &protocol.Error{Message: failed.Message}
	} else if errors.Is(err, errEnough) || errors.Is(err, context.Canceled) {
		err = &protocol.Error{Message: err.Error()}
	}
	return d.refused(reply, err)
}

func TestCapturedProgramLeavesNothing(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	capture := func(ask Ask, command string) Reply {
		ask.Request.Argv = []string{"sh", "-c", command}
		return a.ask("Capture", ask)
	}
	got := capture(Ask{Key: "input"}, "cat; echo warning >&2; sleep 300 >/dev/null 2>&1 &")
	check.Equal(t, "output", "input", string(got.Contents))
	got = capture(Ask{}, "echo out; echo failed >&2; exit 3")
	if got.From != 3 || got.Refusal == nil || got.Refusal.Message != "failed" || string(got.Contents) != "out\n" {
		t.Errorf("got %+v", got)
	}
	for words, ask := range map[string]Ask{"that is enough": {Limit: 1}, "context canceled": {Limit: 1, Wait: 1}} {
		got = capture(ask, "(setsid sleep 300 &); yes")
		if got.Refusal == nil || got.Refusal.Message != words {
			t.Errorf("got %+v, want %s", got.Refusal, words)
		}
	}
	if got = capture(Ask{}, "kill -9 $$"); got.From != -1 || got.Refusal == nil {
		t.Errorf("got %+v", got)
	}
	waiting.Until(t, patience, "nothing of them runs", func() bool { return len(a.below()) == 0 })
	check.Equal(t, "commands that are listed", 0, len(a.must("List", Ask{}).List))
}
