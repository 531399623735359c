// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"parley.dev/parley/api/stream/parts"
)

// written is how many bytes the command writes: 20 MB.
const written = 20_000_000

// output measures a command that writes as fast as it can, as a client of the gateway sees it.
func (b *bench) output(ctx context.Context, o *Output) error {
	ctx, stop := context.WithCancel(ctx) // The stream ends with the stage.
	defer stop()
	command := fmt.Sprintf(`{"command":"yes 'a line of a log, as they are' | head -c %d","timeout":300}`, written)
	if err := b.script(ctx, answerWithTool("execute", command)); err != nil {
		return err
	}
	if err := b.newWorkingChat(ctx, "output"); err != nil {
		return err
	}
	seen, err := b.stream(ctx, "output")
	if err != nil {
		return err
	}
	if err := b.say(ctx, "output", "output-0"); err != nil {
		return err
	}
	begun, err := next(ctx, seen, 0, string(parts.ToolStart))
	if err != nil {
		return err
	}
	live := 0
	for p := range seen {
		switch p.kind {
		case string(parts.ToolOutput):
			live += p.bytes
		case string(parts.ToolResult):
			o.LiveKiB = float64(live) / (1 << 10)
			o.MBPerSecond = written / 1e6 / p.at.Sub(begun.at).Seconds()
			return b.follow.answered(ctx, "output", 4)
		}
	}
	return fmt.Errorf("the gateway ended the stream before the result")
}
