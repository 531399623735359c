// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/internal/workspace/agent/process"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// talk is a session with a command, as a client has it.
type talk struct {
	t testing.TB
	protocol.Process
	conn net.Conn
	said *bufio.Reader
}

// trySpeak starts a command that is spoken to.
func (a *agent) trySpeak(key, command string) (*talk, Reply) {
	a.t.Helper()
	a.must("List", Ask{}) // It is there.
	conn, err := net.Dial("unix", a.settings.Socket+"-speak")
	check.OK(a.t, err)
	a.t.Cleanup(func() { conn.Close() })
	check.OK(a.t, conn.SetDeadline(time.Now().Add(patience)))
	ask := Ask{Key: key, Request: protocol.StartRequest{Command: command}}
	check.OK(a.t, json.NewEncoder(conn).Encode(ask))
	s := &talk{t: a.t, conn: conn, said: bufio.NewReader(conn)}
	var reply Reply
	first, err := s.said.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(first, &reply)
	}
	check.OK(a.t, err)
	s.Process = reply.Process
	return s, reply
}

func (a *agent) speak(command string) *talk {
	a.t.Helper()
	s, reply := a.trySpeak(newKey(), command)
	if reply.Refusal != nil {
		a.t.Fatalf("it was refused: %s", reply.Refusal.Message)
	}
	return s
}

func (s *talk) say(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.conn, text); err != nil {
		s.t.Fatal(err)
	}
}

// hears checks what the command says next.
func (s *talk) hears(line string) {
	s.t.Helper()
	if got, err := s.said.ReadString('\n'); err != nil || got != line {
		s.t.Fatalf("it says %q (%v), not %q", got, err, line)
	}
}

// rest is what it says until nobody is there to say more.
func (s *talk) rest() string {
	s.t.Helper()
	rest, err := io.ReadAll(s.said)
	check.OK(s.t, err)
	return string(rest)
}

func TestSessionConnectsStdioAndKeepsStderr(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	s := a.speak(`echo begun >&2; while read line; do echo "heard $line"; done; echo over >&2`)
	s.say("one\ntwo\n")
	s.hears("heard one\n")
	s.hears("heard two\n")
	s.conn.Close()
	exits(t, a.wait(s.ID), 0)
	a.until(s.ID, "begun\nover\n")
	a.alone()
}

// Security (a hostile MCP server): cannot, as a program in the workspace, outlive its session with what it has started,
// fill the agent or the generation pod by what it writes, or keep an abandoned session by not reading or not ending.
// Also TestSessionCloseEndsCommandWithEndlessOutput, TestSessionCloseEndsCommandThatReadsNothing of
// internal/workspace/agent/process; TestInvalidCommandIsUnavailable of internal/mcp.
func TestSessionCloseEndsCommandAndItsDescendants(t *testing.T) {
	t.Parallel()
	for _, tree := range append(trees, struct{ name, command string }{
		"ignoring the end of its input", "echo ready; exec sleep 60",
	}) {
		t.Run(tree.name, func(t *testing.T) {
			a := newAgent(t)
			other := a.start("exec sleep 60")
			s := a.speak(tree.command)
			s.hears("ready\n")
			s.conn.Close()
			if p := a.wait(s.ID); p.State != protocol.Exited {
				t.Errorf("it is %+v", p)
			}
			a.onlyLeft(2)
			a.must("Signal", Ask{ID: other.ID, Signal: protocol.Kill})
		})
	}
}

func TestTheEndOfACommandEndsItsSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ command, says string }{
		"at once":                          {"exit 3", ""},
		"after it has said something":      {"printf 'no newline'; exit 3", "no newline"},
		"leaving a child with its output":  {"sleep 60 & echo bye; exit 3", "bye\n"},
		"leaving one that goes on writing": {"(while :; do echo x; sleep 0.1; done) >/dev/null & exit 3", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t)
			s := a.speak(c.command)
			if said := s.rest(); said != c.says {
				t.Errorf("it says %q", said)
			}
			exits(t, a.wait(s.ID), 3)
			a.alone()
		})
	}
}

func TestASessionLastsUntilItsCommandHasEnded(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	s := a.speak("sleep 0.3; exec <&- >&-; sleep 0.3; exit 3")
	s.say("nobody reads this\n")
	s.rest()
	exits(t, a.must("Get", Ask{ID: s.ID}).Process, 3)
}

func TestSessionCloseEndsCommandWithEndlessOutput(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	s := a.speak("exec cat /dev/zero")
	if _, err := io.CopyN(io.Discard, s.said, 32<<20); err != nil {
		t.Fatal(err)
	}
	if kib := memory(t, a.program.Process.Pid); kib > 100<<10 {
		t.Errorf("the agent has %d KiB", kib)
	}
	s.conn.Close()
	a.wait(s.ID)
	a.alone()
}

func TestSessionCloseEndsCommandThatReadsNothing(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(s *settings) { s.Limits.Unread = 300 * time.Millisecond })
	s := a.speak("echo ready; exec sleep 60")
	s.hears("ready\n")
	check.OK(t, s.conn.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
	for s.writes() { // Until all that holds it on the way is full.
	}
	s.conn.Close()
	a.wait(s.ID)
	a.alone()
}

func (s *talk) writes() bool {
	_, err := s.conn.Write(make([]byte, 64<<10))
	return err == nil
}

func TestSessionsThatHaveEndedDisplaceNoCommands(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(s *settings) { s.Limits.FinishedSessions = 2 })
	command, _ := a.run("echo kept")
	var sessions []string
	for range 4 {
		s := a.speak("exit 1")
		s.rest()
		sessions = append(sessions, s.ID)
	}
	waiting.Until(t, patience, "two sessions are left", func() bool { return len(a.must("List", Ask{}).List) == 3 })
	for i, id := range sessions {
		if gone := a.ask("Get", Ask{ID: id}).Refusal != nil; gone != (i < 2) {
			t.Errorf("%s is gone: %v", id, gone)
		}
	}
	if said := a.output(command.ID); said != "kept\n" {
		t.Errorf("the command said %q", said)
	}
}

func TestTheEndOfTheContainerEndsSessions(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	s := a.speak("trap '' TERM; echo ready; sleep 60")
	s.hears("ready\n")
	a.stop()
	s.rest()
	a.boot()
	killed(t, a.must("Get", Ask{ID: s.ID}).Process, "SIGKILL")
}

func TestASessionThatCannotBeginIsRefused(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(s *settings) { s.Limits = process.Limits{Running: 2} })
	s, _ := a.trySpeak("key", "exec cat")
	_, again := a.trySpeak("key", "exec cat")
	if message := refusal(t, again, protocol.BadRequest); !strings.Contains(message, "was used before") {
		t.Errorf("it says %q", message)
	}
	_, main := a.trySpeak("main", "exec cat")
	refusal(t, main, protocol.BadRequest)
	_, none := a.trySpeak(newKey(), "")
	refusal(t, none, protocol.BadRequest)
	other := a.start("exec sleep 60")
	_, full := a.trySpeak(newKey(), "exec cat")
	refusal(t, full, protocol.TooMany)
	s.say("still there\n")
	s.hears("still there\n")
	s.conn.Close()
	a.must("Signal", Ask{ID: other.ID, Signal: protocol.Kill})
	waiting.Until(t, patience, "all have ended", func() bool { return a.ask("List", Ask{}).Running == 0 })
	a.alone()
}
