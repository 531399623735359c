// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// report prints the figures for people.
func report(out io.Writer, f *Figures) {
	t, row := table(out)
	row("first part, warm pod", "p50 %.1f ms, p95 %.1f ms; %.2f of the floor's %.1f ms", f.FirstPart.P50,
		f.FirstPart.P95, f.FirstPartShare, f.Floor.FirstPart.P50)
	row("second step, from call to text", "p50 %.1f ms, p95 %.1f ms", f.SecondStep.P50, f.SecondStep.P95)
	row("whole turn", "p50 %.1f ms, p95 %.1f ms; %.2f of the floor's %.1f ms", f.Turn.P50, f.Turn.P95, f.TurnShare,
		f.Floor.Turn.P50)
	row("turns back to back", "first part p50 %.1f ms (%.2f of the floor), turn %.1f ms (%.2f)",
		f.BackToBack.FirstPart.P50, f.BackToBack.FirstPartShare, f.BackToBack.Turn.P50, f.BackToBack.TurnShare)
	h := &f.Hops
	row("a turn's hops (ms)", "created %.1f, decided %.1f, assigned %.1f, begun %.1f, model asked %.1f, first part %.1f, "+
		"finished %.1f, ended %.1f", h.Created, h.Decided, h.Assigned, h.Begun, h.Asked, h.FirstPart, h.Finished, h.Ended)
	if w := f.Workspace; w != nil {
		row("execute true, from call to text", "p50 %.1f ms, p95 %.1f ms", w.Execute.P50, w.Execute.P95)
		row("first call, workspace created", "%.2f s, %.2f s for a bare pod of its image", w.Cold, w.BarePod)
		row("command that writes 20 MB", "%.0f MB/s to its result, %.0f KiB of it seen live", w.Output.MBPerSecond,
			w.Output.LiveKiB)
		row("memory of a workspace's agent (MiB)", "%.0f, %.0f with 100 commands", w.Agent.Idle, w.Agent.Busy)
	}
	if m := f.MCP; m != nil {
		row("first part with 5 MCP servers", "p50 %.1f ms, %.2f of that without (%.1f ms); %.0f ms when they are met",
			m.With.P50, m.ShareOfWithout, m.Without.P50, m.Unknown)
		row("beside an MCP server that hangs", "p50 %.1f ms, %.2f of that without; %.0f ms when it is met", m.Hanging.P50,
			m.HangingShare, m.Met)
		row("call of an MCP tool, to text", "p50 %.1f ms, p95 %.1f ms", m.SecondStep.P50, m.SecondStep.P95)
		row("20 chats with 5 MCP servers each", "%d connections at most, %d left; generator %.0f MiB, %.0f without",
			m.Connections, m.Left, m.Generator, m.GeneratorWithout)
	}
	for _, n := range []string{"100", "300"} {
		b, measured := f.Burst[n]
		if !measured {
			continue
		}
		row(n+" chats at once", "%.0f turns/s, %.2f of a bare client's %.0f (%.2f writes a turn)", b.TurnsPerSecond,
			b.ShareOfBare, b.BarePerSecond, b.WritesPerTurn)
		row("  CPU of the API server", "%.1f ms a turn, %.1f of the bare client's; with Parley's own %.1f ms %.2f of it",
			b.ServerCPU, b.BareServerCPU, b.OwnCPU, b.CPUShare)
	}
	if g := f.Growth; g.Share > 0 {
		row("300 chats and one warm pod", "%.1f s, %.2f of the %.1f s with %d pods; it grew to %d", g.OnePod, g.Share,
			g.PodsUp, growthPods, g.PodsNow)
	}
	row("writes", "%.2f a turn of one step, %.2f a further step, %.2f events a turn; %.2f reads of etcd",
		f.Writes.SingleStep, f.Writes.FurtherStep, f.Writes.Events, f.Reads)
	row("first part, cold pod", "%.2f s, %.2f of a bare pod's %.2f s", f.ColdPod, f.ColdPodShare, f.BarePod)
	row("memory after the bursts (MiB)",
		"manager %.0f, generator %.0f, relay %.0f, gateway %.0f (largest of %d generation pods)", f.RSS.Manager,
		f.RSS.Generator, f.RSS.Relay, f.RSS.Gateway, f.GenerationPods)
	row("CPU of a turn in a burst (ms)", "manager %.1f, generators %.1f, relays %.1f, gateway %.1f", f.CPU.Manager,
		f.CPU.Generator, f.CPU.Relay, f.CPU.Gateway)
	if f.ManyChats > 0 {
		row("manager with many chats (MiB)", "%.0f", f.ManyChats)
	}
	_ = t.Flush()
}

// table is empty, and row adds a row to it.
func table(out io.Writer) (t *tabwriter.Writer, row func(name, format string, args ...any)) {
	t = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t)
	return t, func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
}

// reportScale prints the figures of many chats for people.
func reportScale(out io.Writer, f *Scale) {
	t, row := table(out)
	for _, s := range []*State{&f.Empty, &f.Chats, &f.Namespaces} {
		name := "one chat"
		switch {
		case s.Namespaces > 0:
			name = fmt.Sprintf("%d chats in %d namespaces", s.Chats, s.Namespaces)
		case s.Chats > 0:
			name = fmt.Sprintf("%d chats in a namespace", s.Chats)
		}
		row(name, "first part p50 %.1f ms (%.2f of one chat's), p95 %.1f ms; turn p50 %.1f ms (%.2f), p95 %.1f ms",
			s.FirstPart.P50, s.FirstPartShare, s.FirstPart.P95, s.Turn.P50, s.TurnShare, s.Turn.P95)
		row("  programs (MiB)", "manager %.0f, %.0f of it live; gateway %.0f", s.Manager.RSS, s.Manager.Live, s.Gateway.RSS)
		row("  manager deleted", "ready after %.1f s, answers after %.1f s", s.Ready, s.Answered)
	}
	d := &f.Deletion
	row("chats deleted", "%.0f messages/s; another chat meanwhile: first part p50 %.1f ms, p95 %.1f ms; turn %.1f ms, "+
		"%.1f ms", d.PerSecond, d.FirstPart.P50, d.FirstPart.P95, d.Turn.P50, d.Turn.P95)
	a := &f.Fairness
	row(fmt.Sprintf("beside %d busy chats", a.Busy), "first part p50 %.1f ms (%.1f of idle), p95 %.1f ms (%.1f); "+
		"turn %.1f ms (%.1f), %.1f ms (%.1f); a create alone %.1f and %.1f of idle; they make %.0f turns/s",
		a.FirstPart.P50, a.FirstPartShare.P50, a.FirstPart.P95, a.FirstPartShare.P95, a.Turn.P50, a.TurnShare.P50,
		a.Turn.P95, a.TurnShare.P95, a.CreateShare.P50, a.CreateShare.P95, a.BusyPerSecond)
	p := &f.OnePod
	row(fmt.Sprintf("%d chats in one pod", p.Chats), "all answered in %.1f s, replies of %.1f s, %d at once; "+
		"parts late p50 %.1f ms, p95 %.1f ms", p.All, p.Reply, p.AtOnce, p.Late.P50, p.Late.P95)
	row("  its CPU and memory", "generator %.1f s, %.0f MiB; relay %.1f s, %.0f MiB", p.CPU.Generator, p.Generator,
		p.CPU.Relay, p.Relay)
	_ = t.Flush()
}
