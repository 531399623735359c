// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// grace is how long a command of an interrupted chat has to end after SIGTERM, so that all of it ends within a second.
	grace = 500 * time.Millisecond
	// descendantGrace is how long its descendants have to end after the command.
	descendantGrace = 300 * time.Millisecond
	// endTimeout bounds the end of a command whose chat was interrupted. With startGrace and findTimeout, that is less
	// than the 15 s after which an interrupted turn ends without its results.
	endTimeout = 8 * time.Second
	// findTimeout bounds the search for a command that a former attempt has started.
	findTimeout = 4 * time.Second
)

// descendantPauses are the pauses between checks of descendants.
var descendantPauses = retry.Backoff{First: 100 * time.Millisecond, Max: 2 * time.Second}

// awaitProcess waits for the end of a process, at most so long, and shows its output meanwhile, from the offset on. A
// process that still runs then is no error.
func (c *common) awaitProcess(
	ctx context.Context, workspace *client.Client, call tools.Call, p *protocol.Process, most time.Duration, from int64,
) (*protocol.Process, error) {
	defer call.Alive()
	if p.State != protocol.Running || most <= 0 {
		return p, nil
	}
	waiting, done := c.timeout(ctx, most)
	defer done()
	following, stop := context.WithCancel(waiting)
	var running sync.WaitGroup
	running.Go(func() { follow(following, workspace, p.ID, from, call.Show) })
	ended, err := workspace.Wait(waiting, p.ID, call.Alive)
	stop()
	running.Wait()
	if err == nil || ctx.Err() != nil || waiting.Err() == nil {
		return ended, err
	}
	return workspace.Process(ctx, p.ID)
}

// awaitDescendants waits for the end of the descendants of a command that has exited, at most so long.
func (c *common) awaitDescendants(
	ctx context.Context, workspace *client.Client, call tools.Call, p *protocol.Process, most time.Duration,
) (*protocol.Process, error) {
	if p.Descendants == nil || most <= 0 {
		return p, nil
	}
	waiting, done := c.timeout(ctx, most)
	defer done()
	for pauses := descendantPauses.Start(); p.Descendants != nil && pauses.Wait(waiting, nil) == nil; {
		next, err := workspace.Process(ctx, p.ID)
		if err != nil {
			return nil, err
		}
		call.Alive()
		p = next
	}
	return p, ctx.Err()
}

// end sends SIGTERM to a process of an interrupted chat and its descendants, and SIGKILL to those that still run. It
// returns the process afterwards.
func (c *common) end(ctx context.Context, workspace *client.Client, id string) (*protocol.Process, error) {
	for _, signal := range []protocol.Signal{protocol.Terminate, protocol.Kill} {
		_, err := workspace.Signal(ctx, id, signal)
		if isCode(err, protocol.NotRunning) {
			return workspace.Process(ctx, id)
		}
		if err != nil {
			return nil, err
		}
		waiting, done := c.timeout(ctx, grace)
		_, err = workspace.Wait(waiting, id, func() {})
		late := waiting.Err() != nil
		done()
		if err != nil && !late {
			return nil, err
		}
		if !late && signal == protocol.Terminate {
			_ = retry.Sleep(ctx, descendantGrace)
		}
	}
	return workspace.Process(ctx, id)
}

// findByKey returns the process that was started with a key; nil: there is none.
func findByKey(ctx context.Context, workspace *client.Client, key string) (*protocol.Process, error) {
	all, err := workspace.Processes(ctx)
	if i := slices.IndexFunc(all, func(p protocol.Process) bool { return p.Key == key }); i >= 0 {
		return &all[i], nil
	}
	return nil, err
}

const (
	// maxOutput bounds the bytes of a command's output in a result: the first two thirds and the last third.
	maxOutput = 32 << 10
	// rawPart is how many bytes are read of the beginning, and of the end, of an output: more than is returned, because
	// progress lines and escape sequences are reduced.
	rawPart = 256 << 10
	// outputTimeout bounds the reading of an output.
	outputTimeout = 30 * time.Second
	// maxGaps bounds the gaps in the end of an output. The rest is not read.
	maxGaps = 8
	// showBytes is the most that is shown at once, more than a screen.
	showBytes = 4 << 10
	// showPause is the least time between two pieces at the beginning; see pauseAfter.
	showPause = 50 * time.Millisecond
	// maxShown bounds the bytes of one command that are shown, so that several commands have room in the preview.
	maxShown = 256 << 10
	// idlePause is the pause after an answer without output.
	idlePause = 250 * time.Millisecond
)

// output of a command for the model.
type output struct {
	// head and tail are texts; between them, skipped bytes are not shown.
	head, tail string
	skipped    int64
}

// readOutput reads the output of a process.
func readOutput(ctx context.Context, from *client.Client, p *protocol.Process) (*output, error) {
	ctx, cancel := context.WithTimeout(ctx, outputTimeout)
	defer cancel()
	first, err := from.Output(ctx, p.ID, 0, rawPart, 0)
	if err != nil {
		return nil, err
	}
	var all screen
	_, _ = all.Write(first.Data) // It never fails.
	if first.Next() >= first.Total {
		return &output{head: all.End(p.State == protocol.Running)}, nil
	}
	last, err := from.Output(ctx, p.ID, max(first.Next(), first.Total-rawPart), rawPart, 0)
	if err != nil {
		return nil, err
	}
	end, data, skipped := &all, last.Data, last.From-first.Next()
	if skipped > 0 {
		end, data = &screen{}, trimPartialRune(data)
	}
	_, _ = end.Write(data)
	if err := readRest(ctx, from, p.ID, last, end); err != nil {
		return nil, err
	}
	if skipped <= 0 {
		return &output{head: all.End(p.State == protocol.Running)}, nil
	}
	return &output{head: all.End(true), tail: end.End(p.State == protocol.Running), skipped: skipped}, nil
}

// readRest adds the output after a piece. An answer ends before bytes that are not kept, for example because the disk
// was full.
func readRest(ctx context.Context, from *client.Client, id string, piece *client.Output, to *screen) error {
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

// trimPartialRune removes the rest of a character that was cut.
func trimPartialRune(data []byte) []byte {
	for n := 0; n < utf8.UTFMax-1 && len(data) > 0 && !utf8.RuneStart(data[0]); n++ {
		data = data[1:]
	}
	return data
}

// shorten is the output in at most so many bytes.
func (o *output) shorten(most int) (text string, truncated bool) {
	if o.skipped == 0 {
		text = tools.Truncate(o.head, most)
		return text, text != o.head
	}
	const marker = 64 // bytes at most
	room := max(0, most-marker)
	head, tail := o.head, o.tail
	if len(head)+len(tail) > room {
		head, tail = clip.Bytes(head, room*2/3), clip.LastBytes(tail, room-room*2/3)
	}
	skipped := o.skipped + int64(len(o.head)-len(head)+len(o.tail)-len(tail))
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", head, skipped, tail), true
}

// follow shows the output of a process from the offset on until ctx is done, and only the end of a flood. Errors end it
// without a report, because it is a preview.
func follow(ctx context.Context, workspace *client.Client, id string, from int64, show func(string)) {
	var text screen
	cut := from > 0
	for shown := 0; shown < maxShown; {
		piece, err := newest(ctx, workspace, id, from)
		if err != nil {
			return
		}
		gap := ""
		if skipped := piece.From - from; skipped > 0 {
			gap = fmt.Sprintf("\n[... %d bytes left out ...]\n", skipped)
			text, cut = screen{}, true
		}
		data := piece.Data
		if cut {
			data = trimPartialRune(data)
		}
		_, _ = text.Write(data) // It never fails.
		from, cut = piece.Next(), false
		pause := idlePause
		if seen := gap + clip.LastBytes(text.Take(), showBytes-len(gap)); seen != "" {
			show(seen)
			shown += len(seen)
			pause = pauseAfter(shown)
		}
		if retry.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// newest waits for output after the offset, and returns the last piece of it.
func newest(ctx context.Context, workspace *client.Client, id string, from int64) (*client.Output, error) {
	piece, err := workspace.Output(ctx, id, from, showBytes, protocol.MaxWait)
	if err != nil || piece.Next() >= piece.Total {
		return piece, err
	}
	return workspace.Output(ctx, id, max(from, piece.Total-showBytes), showBytes, 0)
}

// pauseAfter is the pause after so many bytes were shown: 50 ms at first, 0.8 s after 12 KiB, 14 s after 64 KiB. So the
// beginning is live, and a command that runs for hours does not fill the preview at once.
func pauseAfter(shown int) time.Duration {
	n := time.Duration(1 + shown/showBytes)
	return showPause * n * n
}
