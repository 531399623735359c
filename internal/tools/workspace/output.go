// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// maxOutput is how many bytes of a command's output the model reads: 32 KiB, first two thirds and last third.
	maxOutput = 32 << 10
	// rawPart is how many bytes are read of the beginning, and of the end, of an output. It is more than is shown,
	// because progress lines and escape sequences come to less: 256 KiB.
	rawPart = 256 << 10
	// outputTime bounds the reading of an output: 30 s.
	outputTime = 30 * time.Second
)

// output is what a command has written, as the model reads it.
type output struct {
	// head and tail are texts; between them, left bytes are not shown.
	head, tail string
	left       int64
}

// read reads what a process has written so far.
func read(ctx context.Context, from *client.Client, p *protocol.Process) (*output, error) {
	ctx, cancel := context.WithTimeout(ctx, outputTime)
	defer cancel()
	first, err := from.Output(ctx, p.ID, 0, rawPart, 0)
	if err != nil {
		return nil, err
	}
	var all screen
	if first.Next() >= first.Total {
		_, _ = all.Write(first.Data) // It never fails.
		return &output{head: all.End(p.State == protocol.Running)}, nil
	}
	_, _ = all.Write(first.Data)
	last, err := from.Output(ctx, p.ID, max(first.Next(), first.Total-rawPart), rawPart, 0)
	if err != nil {
		return nil, err
	}
	end, left := &all, last.From-first.Next()
	data := last.Data
	if left > 0 {
		end, data = &screen{}, behindCut(data)
	}
	_, _ = end.Write(data)
	if err := readOn(ctx, from, p.ID, last, end); err != nil {
		return nil, err
	}
	if left <= 0 {
		return &output{head: all.End(p.State == protocol.Running)}, nil
	}
	return &output{head: all.End(true), tail: end.End(p.State == protocol.Running), left: left}, nil
}

// maxGaps is how many gaps there may be in the end of an output before the rest is not read.
const maxGaps = 8

// readOn adds what follows on a piece. An answer ends where something is not kept, such as what a full disk did not
// take.
func readOn(ctx context.Context, from *client.Client, id string, piece *client.Output, to *screen) error {
	next, total := piece.Next(), piece.Total
	for range maxGaps {
		if next >= total {
			return nil
		}
		more, err := from.Output(ctx, id, next, rawPart, 0)
		if err != nil {
			return err
		}
		if gap := more.From - next; gap > 0 {
			_, _ = fmt.Fprintf(to, "\n[... %d bytes were not kept ...]\n", gap)
		}
		_, _ = to.Write(more.Data)
		next = more.Next()
	}
	return nil
}

// behindCut leaves out the rest of a character that was cut in two.
func behindCut(data []byte) []byte {
	for n := 0; n < utf8.UTFMax-1 && len(data) > 0 && !utf8.RuneStart(data[0]); n++ {
		data = data[1:]
	}
	return data
}

// shorten is the output in at most so many bytes.
func (o *output) shorten(most int) (text string, truncated bool) {
	if o.left == 0 {
		text = tools.Truncate(o.head, most)
		return text, text != o.head
	}
	const marker = 64 // It has at most so many bytes.
	room := max(0, most-marker)
	head, tail := o.head, o.tail
	if len(head)+len(tail) > room {
		head, tail = clip.Bytes(head, room*2/3), clip.LastBytes(tail, room-room*2/3)
	}
	left := o.left + int64(len(o.head)-len(head)+len(o.tail)-len(tail))
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", head, left, tail), true
}
