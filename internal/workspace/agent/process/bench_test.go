// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"os/exec"
	"testing"
	"time"

	"parley.dev/parley/internal/workspace/agent/supervisor"
	"parley.dev/parley/test/kit/check"
)

// BenchmarkAChattyCommand measures how fast output goes to disk, and what that costs the agent.
func BenchmarkAChattyCommand(b *testing.B) {
	const size = 256 << 20
	for _, c := range []struct{ name, command string }{
		{"in large writes", "head -c 268435456 /dev/zero"},
		{"in lines", "yes 123456789012345 | head -c 268435456 | cat -u"},
	} {
		b.Run(c.name, func(b *testing.B) {
			a := newAgent(b)
			b.SetBytes(size)
			for b.Loop() {
				p := a.start(c.command)
				if p = a.wait(p.ID); p.OutputBytes != size {
					b.Fatalf("got %+v", p)
				}
			}
			b.ReportMetric(float64(memory(b, a.program.Process.Pid)), "KiB")
		})
	}
}

// BenchmarkSmallWrites measures a command that writes line by line.
func BenchmarkSmallWrites(b *testing.B) {
	a := newAgent(b)
	for b.Loop() {
		if p, _ := a.run("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); echo $i; done"); p.OutputBytes != 588895 {
			b.Fatalf("got %+v", p)
		}
	}
}

// BenchmarkStart measures a command from its start to the answer that it has ended, with its record on disk, and how
// many times as long that takes as the same command without an agent.
func BenchmarkStart(b *testing.B) {
	a := newAgent(b)
	var alone time.Duration
	for b.Loop() {
		a.run("true")
		b.StopTimer()
		began := time.Now()
		check.OK(b, exec.Command("/bin/sh", "-c", "true").Run())
		alone += time.Since(began)
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed())/float64(alone), "x-alone")
}

// BenchmarkAHundred measures the memory of the agent with as many commands as may run, all of them writing.
func BenchmarkAHundred(b *testing.B) {
	for b.Loop() {
		a := newAgent(b)
		for range 100 {
			a.start("while :; do echo some output; sleep 0.05; done")
		}
		b.ReportMetric(float64(memory(b, a.program.Process.Pid)), "KiB")
		supervisors := 0
		for _, p := range a.below() {
			if p.CommandLine(100) == supervisor.Name {
				supervisors += memory(b, p.PID)
			}
		}
		b.ReportMetric(float64(supervisors)/100, "KiB-supervisor")
		if reply := a.must("List", Ask{}); reply.Running != 100 {
			b.Fatalf("%d run", reply.Running)
		}
		a.kill()
	}
}
