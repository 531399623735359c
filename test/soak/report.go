// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// report prints the table.
func report(out io.Writer, l *ledger, c *chaos, s *state, followers []*follower) {
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(out, "%-34s %s\n", name, fmt.Sprintf(format, args...))
	}
	questions := l.all()
	kinds := map[kind]int{}
	var took []time.Duration
	var slowest *question
	for _, q := range questions {
		kinds[q.kind]++
		if t := l.took(q); t > 0 {
			took = append(took, t)
			if slowest == nil || t > l.took(slowest) {
				slowest = q
			}
		}
	}
	row("seed", "%d", c.seed)
	row("chats, messages", "%d, %d (%d quick, %d with a tool, %d slow, %d long, %d very long)", len(s.chats),
		len(questions), kinds[quick], kinds[tool], kinds[slow], kinds[long], kinds[longest])
	if c.upgrade != nil {
		row("approvals", "%d", c.upgrade.approved.Load())
		row("sub-chats", "%d", kinds[agent])
		row("commands", "%d, %d in the background; %d ran while the manager was moved, %d the gateway",
			kinds[command], kinds[background], c.upgrade.commandsDuring("manager", questions),
			c.upgrade.commandsDuring("gateway", questions))
	}
	for _, name := range slices.Sorted(maps.Keys(c.count)) {
		row(name, "%d times", c.count[name])
	}
	if len(took) > 0 {
		slices.Sort(took)
		at := func(percent int) string { return took[(len(took)-1)*percent/100].Round(10 * time.Millisecond).String() }
		row("from message to answer", "p50 %s, p95 %s, p99 %s, longest %s (%s, sent %s)", at(50), at(95), at(99), at(100),
			slowest.name, slowest.sent.UTC().Format("15:04:05"))
	}
	needed, lost := s.cost()
	row("model calls", "%d, of which %d beyond the %d replies", len(s.calls), len(s.calls)-needed, needed)
	row("lost attempts", "%d", lost)
	restarts := int32(0)
	for i := range s.pods {
		for _, status := range s.pods[i].Status.ContainerStatuses {
			restarts += status.RestartCount
		}
	}
	row("generation pods left, warm", "%d, restarted %d times", len(s.pods), restarts)
	told, parts, connects, gap := 0, 0, 0, time.Duration(0)
	for _, f := range followers {
		gap = max(gap, f.gap)
		told, parts, connects = told+len(f.story.chat.Messages), parts+f.story.parts, connects+f.connects
	}
	row("followers", "%d, told %d messages and %d parts in %d connections", len(followers), told, parts, connects)
	row("longest time without a stream", "%s", gap.Round(10*time.Millisecond))
	row("came to rest in", "%s", s.settled.Round(100*time.Millisecond))
}

// newLog writes lines with the time of day, to compare with other logs, and the time since the start.
func newLog(out io.Writer) *slog.Logger {
	start := time.Now()
	withElapsed := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			now := a.Value.Time()
			return slog.String(a.Key, fmt.Sprintf("%s +%.1fs", now.UTC().Format("15:04:05.000"), now.Sub(start).Seconds()))
		}
		return a
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: withElapsed}))
}
