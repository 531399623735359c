// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"time"

	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// showBytes is the most that is shown at once: 4 KiB, more than a screen.
	showBytes = 4 << 10
	// showPause is the least time between two pieces, at the beginning. It grows with what was shown: see pauseAfter.
	showPause = 50 * time.Millisecond
	// maxShown is how many bytes of one command are shown while it runs: 256 KiB, so that some commands together leave
	// room in the preview.
	maxShown = 256 << 10
	// idlePause is the pause after an answer that brought nothing.
	idlePause = 250 * time.Millisecond
)

// follow shows what a process writes, from the offset on, until ctx is done. Of what comes faster than it can be shown
// it shows the end. What it shows is a preview, so that errors end it in silence.
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
			data = behindCut(data)
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

// newest waits for what a process writes behind the offset, and is the end of that, at most one piece.
func newest(ctx context.Context, workspace *client.Client, id string, from int64) (*client.Output, error) {
	piece, err := workspace.Output(ctx, id, from, showBytes, protocol.MaxWait)
	if err != nil || piece.Next() >= piece.Total {
		return piece, err
	}
	return workspace.Output(ctx, id, max(from, piece.Total-showBytes), showBytes, 0)
}

// pauseAfter is the pause after so many bytes were shown: 50 ms at first, 0.8 s after 12 KiB, 14 s after 64 KiB. Who
// looks at the beginning of a build sees it live, and one that runs for hours does not use up the preview at once.
func pauseAfter(shown int) time.Duration {
	n := time.Duration(1 + shown/showBytes)
	return showPause * n * n
}
