// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"parley.dev/parley/internal/workspace/agent/process"
	"parley.dev/parley/internal/workspace/agent/proctree"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

func TestGigabyteOutputKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	// Lines of ten bytes tell which one they are.
	const first, lines, line = 100_000_000, 107_374_182, 10
	const size = lines * line
	a := newAgent(t)
	p := a.start(fmt.Sprintf("exec seq %d %d", first, first+lines-1))
	most, disk := 0, int64(0)
	waiting.Until(t, 4*patience, "it has written all", func() bool {
		most = max(most, memory(t, a.program.Process.Pid))
		disk = max(disk, diskUse(t, a.settings.State))
		return a.must("Get", Ask{ID: p.ID}).Process.State != protocol.Running
	})
	p = a.wait(p.ID)
	exits(t, p, 0)
	stored := diskUse(t, filepath.Join(a.settings.State, "processes", p.ID))
	if p.OutputBytes != size || p.OutputBytes-p.OutputDropped > protocol.HeadBytes+protocol.TailBytes+1<<20 ||
		p.OutputBytes-p.OutputDropped < protocol.HeadBytes+protocol.TailBytes || stored > 18<<20 || disk > 24<<20 {
		t.Errorf("got %+v, %d on disk, and at most %d", p, stored, disk)
	}
	check := func(from int64, reply Reply, want int64) {
		t.Helper()
		if reply.From != from || reply.Total != size || int64(len(reply.Contents)) != want {
			t.Fatalf("%d bytes from %d on of %d", len(reply.Contents), reply.From, reply.Total)
		}
		var expected []byte
		for n := from / line; n*line < from+want; n++ {
			expected = append(strconv.AppendInt(expected, first+n, 10), '\n')
		}
		if expected = expected[from%line:][:want]; !bytes.Equal(reply.Contents, expected) {
			t.Fatalf("from %d on it is something else", from)
		}
	}
	check(0, a.must("Output", Ask{ID: p.ID}), protocol.HeadBytes)
	tail := protocol.HeadBytes + p.OutputDropped
	check(tail, a.must("Output", Ask{ID: p.ID, From: protocol.HeadBytes}), size-tail)
	check(size-line, a.must("Output", Ask{ID: p.ID, From: size - line}), line)
	if reply := a.must("Output", Ask{ID: p.ID, From: size + 5}); reply.From != size+5 || len(reply.Contents) > 0 {
		t.Errorf("behind the end: %+v", reply)
	}
	t.Logf("the agent had at most %d KiB", most)
	if !raceEnabled() && most > 30<<10 {
		t.Errorf("the agent had %d KiB", most)
	}
}

// Security (a hostile model): cannot run more than 100 commands at once in a workspace.
func TestAHundredRunAtOnceAndNoMore(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.must("List", Ask{})
	var starts sync.WaitGroup
	for i := range 100 {
		starts.Go(func() {
			var reply Reply
			ask := Ask{Key: fmt.Sprint("k", i), Request: protocol.StartRequest{Command: "echo up; exec sleep 60"}}
			if err := a.client.Call("Service.Start", ask, &reply); err != nil || reply.Refusal != nil {
				t.Errorf("%v, %+v", err, reply.Refusal)
			}
		})
	}
	starts.Wait()
	oneMore := Ask{Key: "one-more", Request: protocol.StartRequest{Command: "true"}}
	message := refusal(t, a.ask("Start", oneMore), protocol.TooMany)
	if !strings.Contains(message, "100") {
		t.Errorf("it says: %s", message)
	}
	kib := memory(t, a.program.Process.Pid)
	t.Logf("the agent has %d KiB", kib)
	if !raceEnabled() && kib > 30<<10 {
		t.Error("that is too much")
	}
	for _, p := range a.must("List", Ask{}).List {
		a.must("Signal", Ask{ID: p.ID, Signal: protocol.Kill})
	}
	a.alone()
	if p, _ := a.run("echo room"); p.ID != "p101" {
		t.Errorf("the next one is %+v", p)
	}
}

func TestNothingIsLeftOfCommandsThatHaveEnded(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.run("true")
	a.alone()
	before := descriptors(t, a.program.Process.Pid)
	for range 50 {
		a.run("sleep 0 & (sleep 0 &) ; setsid true; echo a")
		missing := Ask{Key: "k", Request: protocol.StartRequest{Argv: []string{"/missing"}}}
		refusal(t, a.ask("Start", missing), protocol.CannotStart)
	}
	a.alone()
	waiting.Until(t, patience, "the descriptors are closed", func() bool {
		return descriptors(t, a.program.Process.Pid) <= before
	})
}

func TestAgentServesWithoutRoomForProcesses(t *testing.T) {
	t.Parallel()
	a := newAgent(t, inNamespace)
	command, other := a.start("echo up; exec sleep 60"), a.start("echo up; exec sleep 60")
	a.until(command.ID, "up\n")
	a.until(other.ID, "up\n")
	a.forbidForks()
	next := Ask{Key: newKey(), Request: protocol.StartRequest{Command: "echo room"}}
	message := refusal(t, a.ask("Start", next), protocol.CannotStart)
	if !strings.Contains(message, "out of processes, memory or file descriptors") {
		t.Errorf("it says: %s", message)
	}
	var calls sync.WaitGroup
	client := a.connected()
	for range 64 {
		calls.Go(func() {
			var reply Reply
			err := client.Call("Service.Output", Ask{ID: command.ID}, &reply)
			if err != nil || string(reply.Contents) != "up\n" {
				t.Errorf("%v: %+v", err, reply)
			}
		})
	}
	calls.Wait()
	for _, p := range []protocol.Process{command, other} {
		a.must("Signal", Ask{ID: p.ID, Signal: protocol.Kill})
		killed(t, a.wait(p.ID), "SIGKILL")
	}
	waiting.Until(t, patience, "there is room", func() bool { return a.ask("Start", next).Refusal == nil })
}

// forbidForks has neither the agent nor what is below it create a process or a thread until others have ended.
func (a *agent) forbidForks() {
	a.t.Helper()
	group, err := os.MkdirTemp("/sys/fs/cgroup/pids", "parley-test-")
	if err != nil {
		a.t.Skip("a cgroup cannot be created:", err)
	}
	a.t.Cleanup(func() {
		a.kill()
		waiting.Until(a.t, patience, "the cgroup is empty", func() bool { return os.Remove(group) == nil })
	})
	for _, p := range append(a.below(), proctree.Process{PID: a.program.Process.Pid}) {
		check.OK(a.t, os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(itoa(p.PID)), 0o600))
	}
	current, err := os.ReadFile(filepath.Join(group, "pids.current"))
	check.OK(a.t, err)
	check.OK(a.t, os.WriteFile(filepath.Join(group, "pids.max"), current, 0o600))
}

func TestCommandsThatLeaveProcessesBehindAreBounded(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(s *settings) { s.Limits.Running = 3 })
	for _, left := range []string{"sleep 60", "sleep 60 >/dev/null 2>&1", "setsid env -i sleep 60 >/dev/null 2>&1"} {
		p := a.start(left + " & echo left")
		exits(t, a.wait(p.ID), 0)
	}
	refusal(t, a.ask("Start", Ask{Key: "k", Request: protocol.StartRequest{Command: "true"}}), protocol.TooMany)
	a.must("Signal", Ask{ID: "p2", Signal: protocol.Terminate})
	waiting.Until(t, patience, "there is room", func() bool {
		return a.ask("Start", Ask{Key: "k", Request: protocol.StartRequest{Command: "true"}}).Refusal == nil
	})
}

func TestTheOldestThatHaveEndedAreForgotten(t *testing.T) {
	t.Parallel()
	limits := process.Limits{Finished: 4, FinishedBytes: 250_000}
	a := newAgent(t, func(s *settings) { s.Limits = limits })
	a.start("exec sleep 60")
	for i := range 6 {
		ask := Ask{Key: fmt.Sprint("k", i), Request: protocol.StartRequest{Command: "head -c 100000 /dev/zero"}}
		a.wait(a.must("Start", ask).Process.ID)
	}
	look := func() string {
		var b bytes.Buffer
		for _, p := range a.must("List", Ask{}).List {
			fmt.Fprint(&b, p.ID, ":", p.OutputBytes-p.OutputDropped, " ")
		}
		return b.String()
	}
	const want = "p7:100000 p6:100000 p5:0 p4:0 p1:0 "
	waiting.Until(t, patience, "only "+want+"are remembered", func() bool { return look() == want })
	a.restart() // It ends the one that runs.
	if got := look(); got != "p7:100000 p6:100000 p5:0 p1:0 " {
		t.Errorf("after a restart: %s", got)
	}
	if reply := a.must("Output", Ask{ID: "p5"}); reply.From != 100000 || reply.Total != 100000 || len(reply.Contents) > 0 {
		t.Errorf("of what is no longer kept: %+v", reply)
	}
	if p := a.must("Start", Ask{Key: "k3", Request: protocol.StartRequest{Command: "true"}}).Process; p.ID != "p5" {
		t.Errorf("the key of p5 started %+v", p)
	}
	if used := diskUse(t, filepath.Join(a.settings.State, "processes")); used > 210_000 {
		t.Errorf("%d bytes are on disk", used)
	}
}

// Security (a hostile workspace): can fill its own disk, and lose what its commands write from then on, which is
// reported. Also TestFullDiskFailsWriteWithoutLeftovers of internal/workspace/agent/files.
func TestFullDiskIsReportedWithoutStoppingCommand(t *testing.T) {
	t.Parallel()
	a := newAgent(t, inNamespace, func(s *settings) { s.StateBytes = 4 << 20 })
	p := a.start("head -c 20000000 /dev/zero; echo end > done; exit 3")
	p = a.wait(p.ID)
	exits(t, p, 3)
	kept := a.must("Output", Ask{ID: p.ID})
	if p.OutputBytes != 20000000 || p.OutputDropped == 0 || !strings.Contains(p.Note, "no space left") ||
		kept.From != 0 || kept.Total != 20000000 || int64(len(kept.Contents)) != p.OutputBytes-p.OutputDropped {
		t.Errorf("got %+v, and %d bytes", p, len(kept.Contents))
	}
	if kib := memory(t, a.program.Process.Pid); !raceEnabled() && kib > 30<<10 {
		t.Errorf("the agent has %d KiB", kib)
	}
	// There is room for the records of a few more, one of which may be what makes room.
	mustRun(t, a, "cat done; rm -f "+filepath.Join(a.settings.State, "processes", p.ID, "output.*"))
	if p, out := a.run("seq 100000"); p.OutputDropped != 0 || len(out) != 588895 || p.Note != "" {
		t.Errorf("with room again: %+v", p)
	}
}
