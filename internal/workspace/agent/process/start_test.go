// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

func TestCommandOutputKeepsWriteOrder(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p, out := a.run("echo one; echo two >&2; printf 'three\\r\\n'; printf '\\377\\000end'")
	exits(t, p, 0)
	if want := "one\ntwo\nthree\r\n\xff\x00end"; out != want || p.OutputBytes != int64(len(want)) || p.OutputDropped != 0 {
		t.Fatalf("got %q of %d bytes", out, p.OutputBytes)
	}
	if rest := a.must("Output", Ask{ID: p.ID, From: 4}); string(rest.Contents) != out[4:] || rest.From != 4 ||
		rest.Total != p.OutputBytes {
		t.Fatalf("from 4 on: %+v", rest)
	}
}

func TestCommandExitIsReported(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	for _, c := range []struct {
		name, command string
		code          int
		signal        string
	}{
		{name: "success", command: "true"},
		{name: "exit code 255", command: "exit 255", code: 255},
		{name: "a program that is not there", command: "no-such-program", code: 127},
		{name: "killed by itself", command: "kill -KILL $$", signal: "SIGKILL"},
		{name: "a signal that it does not handle", command: "kill -USR1 $$", signal: "SIGUSR1"},
		{name: "a reader that has gone away ends who writes", command: "yes | head -n 1; exit 3", code: 3},
		{name: "output closed long before the end", command: "exec >&- 2>&-; sleep 0.2; exit 4", code: 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, _ := a.run(c.command)
			if c.signal != "" {
				killed(t, p, c.signal)
			} else {
				exits(t, p, c.code)
			}
			if p.StartedAt.After(p.EndedAt) {
				t.Errorf("it ended before it began: %+v", p)
			}
		})
	}
}

func TestACommandRunsAlone(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	for _, c := range []struct{ name, command, want string }{
		{"standard input is empty", "cat; echo end", "end\n"},
		{"it leads a session and a process group", "cut -d' ' -f5,6 /proc/$$/stat | grep -c \"^$$ $$\\$\"", "1\n"},
		{"it ignores and blocks no signal", "grep -e SigBlk -e SigIgn /proc/self/status | cut -f2",
			"0000000000000000\n0000000000000000\n"},
		{"it has no terminal", "tty; true", "not a tty\n"},
		{"it has no descriptor of the agent's", "ls /proc/$$/fd; true", "0\n1\n2\n"},
		{"standard output and error can be opened by name", "echo a > /dev/stdout; echo b > /dev/stderr; echo c", "a\nb\nc\n"},
		{"it runs in the workspace's directory", "pwd", a.settings.Directory + "\n"},
		{"nothing of the agent's own is in its environment", "env | grep -e PARLEY_ -e GOGC=off -e GOMAXPROCS -e GODEBUG; true", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, out := a.run(c.command); out != c.want {
				t.Errorf("got %q", out)
			}
		})
	}
}

// Security (a hostile workspace): can read all that its template gives its container: environment, volumes, and the
// token of a service account if it asks for one. Also TestWorkspaceIsRestrictedUnlessTemplateOverrides of
// internal/workspace/template.
func TestRequestEnvironmentOverridesAgentAndContainerEnvironment(t *testing.T) {
	t.Setenv("FROM_CONTAINER", "yes")
	t.Setenv("PAGER", "less")
	a := newAgent(t)
	p := a.must("Start", Ask{Key: "k", Request: protocol.StartRequest{
		Argv: []string{"env"}, Env: []string{"TERM=xterm", "TWICE=1", "TWICE=2", "EMPTY="},
	}}).Process
	a.wait(p.ID)
	got := strings.Split(a.output(p.ID), "\n")
	for _, want := range []string{"FROM_CONTAINER=yes", "PAGER=cat", "TERM=xterm", "TWICE=2", "EMPTY=", "AI_AGENT=parley",
		"GIT_TERMINAL_PROMPT=0", "PWD=" + a.settings.Directory} {
		name, _, _ := strings.Cut(want, "=")
		var found []string
		for _, v := range got {
			if strings.HasPrefix(v, name+"=") {
				found = append(found, v)
			}
		}
		if !slices.Equal(found, []string{want}) {
			t.Errorf("want %s alone, got %q", want, found)
		}
	}
}

func TestARequestThatCannotBeStartedIsRefused(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	script := filepath.Join(a.settings.Directory, "script")
	for name, mode := range map[string]os.FileMode{"script": 0o644, "strange": 0o755} {
		name = filepath.Join(a.settings.Directory, name)
		check.OK(t, os.WriteFile(name, []byte("neither a script nor a program"), mode))
	}
	for _, c := range []struct {
		name    string
		request protocol.StartRequest
		code    protocol.ErrorCode
		says    string
	}{
		{"neither command nor argv", protocol.StartRequest{}, protocol.BadRequest, "exactly one"},
		{"both", protocol.StartRequest{Command: "a", Argv: []string{"a"}}, protocol.BadRequest, "exactly one"},
		{"NUL in an argument", protocol.StartRequest{Argv: []string{"echo", "a\x00b"}}, protocol.BadRequest, "NUL"},
		{"NUL in a command", protocol.StartRequest{Command: "echo \x00"}, protocol.BadRequest, "NUL"},
		{"NUL in the directory", protocol.StartRequest{Command: "pwd", Dir: "a\x00"}, protocol.BadRequest, "NUL"},
		{"no name of a variable", protocol.StartRequest{Command: "env", Env: []string{"=a"}}, protocol.BadRequest, "=a"},
		{"an empty program", protocol.StartRequest{Argv: []string{""}}, protocol.BadRequest, "empty"},
		{"no such directory", protocol.StartRequest{Command: "pwd", Dir: "missing"}, protocol.NotFound, "missing"},
		{"a file as directory", protocol.StartRequest{Command: "pwd", Dir: "script"}, protocol.BadRequest, "no directory"},
		{"no such program", protocol.StartRequest{Argv: []string{"no-such-program"}}, protocol.CannotStart, "PATH"},
		{"no such path", protocol.StartRequest{Argv: []string{"./missing"}}, protocol.CannotStart, "does not exist"},
		{"not executable", protocol.StartRequest{Argv: []string{script}}, protocol.CannotStart, "permission denied"},
		{"not executable in PATH", protocol.StartRequest{Argv: []string{"script"}, Env: []string{"PATH=."}},
			protocol.CannotStart, "permission denied"},
		{"no format that runs", protocol.StartRequest{Argv: []string{"./strange"}}, protocol.CannotStart, "format"},
		{"a directory as program", protocol.StartRequest{Argv: []string{"/"}}, protocol.CannotStart, "permission denied"},
		{"a word that is too long", protocol.StartRequest{Command: strings.Repeat("x", 200<<10)}, protocol.TooLarge, "128 KiB"},
		{"too much of it", protocol.StartRequest{Argv: slices.Repeat([]string{"echo", strings.Repeat("x", 1<<10)}, 7<<10)},
			protocol.TooLarge, "2 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			message := refusal(t, a.ask("Start", Ask{Key: "key", Request: c.request}), c.code)
			if !strings.Contains(message, c.says) {
				t.Errorf("it says: %s", message)
			}
		})
	}
	if left := a.must("List", Ask{}).List; len(left) > 0 {
		t.Errorf("something was started: %+v", left)
	}
	refusal(t, a.ask("Start", Ask{Key: "no/key", Request: protocol.StartRequest{Command: "true"}}), protocol.BadRequest)
	if p, _ := a.run("true"); p.ID != "p1" {
		t.Errorf("what was refused has taken a number: %+v", p)
	}
}

func TestProgramLookupUsesPathOfRequestEnvironment(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	bin := filepath.Join(a.settings.Directory, "bin")
	check.OK(t, os.Mkdir(bin, 0o755))
	script := []byte("#!/bin/sh\necho hello from \"$0\" \"$@\"\n")
	check.OK(t, os.WriteFile(filepath.Join(bin, "greet"), script, 0o755))
	for _, c := range []struct {
		name, program, dir, path, want string
	}{
		{"absolute", "greet", "", "/nowhere:" + bin, bin + "/greet"},
		{"relative to the directory", "greet", "", "bin", bin + "/greet"},
		{"an empty entry is the directory", "greet", "bin", "", bin + "/greet"},
		{"a name with a slash is not looked up", "./greet", "bin", "/nowhere", "./greet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := a.must("Start", Ask{Key: newKey(), Request: protocol.StartRequest{
				Argv: []string{c.program, "it's me"}, Dir: c.dir, Env: []string{"PATH=" + c.path},
			}}).Process
			exits(t, a.wait(p.ID), 0)
			if out := a.output(p.ID); out != "hello from "+c.want+" it's me\n" {
				t.Errorf("got %q", out)
			}
			if p.Command != c.program+` 'it'\''s me'` {
				t.Errorf("it is shown as %s", p.Command)
			}
		})
	}
}

// Security (a hostile workspace): cannot replace the shell that runs the commands by changing PATH.
func TestTheShellIsNotLookedUp(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	bin := filepath.Join(a.settings.Directory, "bin")
	check.OK(t, os.Mkdir(bin, 0o755))
	check.OK(t, os.WriteFile(filepath.Join(bin, "sh"), []byte("#!/bin/cat\n"), 0o755))
	p := a.must("Start", Ask{Key: newKey(), Request: protocol.StartRequest{Command: "echo real", Dir: "bin",
		Env: []string{"PATH=" + bin + ":"}}}).Process
	exits(t, a.wait(p.ID), 0)
	if out := a.output(p.ID); out != "real\n" {
		t.Errorf("got %q", out)
	}
}

func TestASecondStartByAKeyStartsNothing(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	start := func(r protocol.StartRequest) protocol.Process {
		t.Helper()
		return a.must("Start", Ask{Key: "chat-1-1", Request: r}).Process
	}
	first := start(protocol.StartRequest{Command: "echo run >> runs; sleep 0.1"})
	running := start(protocol.StartRequest{Command: "echo run >> runs", Dir: "gone"})
	ended := a.wait(first.ID)
	later := start(protocol.StartRequest{Command: "echo run >> runs"})
	if running.ID != first.ID || later.ID != first.ID || !later.EndedAt.Equal(ended.EndedAt) {
		t.Errorf("got %+v and %+v", running, later)
	}
	if _, runs := a.run("cat runs"); runs != "run\n" {
		t.Errorf("it ran: %q", runs)
	}
}

func TestConcurrentStartsWithSameKeyRunOnce(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.must("List", Ask{})
	ids := make(chan string)
	for range 20 {
		go func() {
			var reply Reply
			ask := Ask{Key: "same", Request: protocol.StartRequest{Command: "echo run >> runs; sleep 1"}}
			if err := a.client.Call("Service.Start", ask, &reply); err != nil {
				reply.Process.ID = err.Error()
			}
			ids <- reply.Process.ID
		}()
	}
	for range 20 {
		if id := <-ids; id != "p1" {
			t.Errorf("got %s", id)
		}
	}
	a.wait("p1")
	if _, runs := a.run("cat runs"); runs != "run\n" {
		t.Errorf("it ran: %q", runs)
	}
}

func TestALongCommandIsShownCut(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p, out := a.run("echo " + strings.Repeat("ä", 5000))
	if len(out) != 10001 {
		t.Errorf("%d bytes came out", len(out))
	}
	if !strings.HasSuffix(p.Command, "ä…") || len(p.Command) > 4<<10+3 {
		t.Errorf("%d bytes are shown", len(p.Command))
	}
}

func TestMainProcessIsNotRestartedAfterExit(t *testing.T) {
	t.Setenv("PAGER", "less")
	a := newAgent(t, func(s *settings) { s.Main = []string{"sh", "-c", "echo main with $PAGER in $PWD; exit 7"} })
	a.appears("p1")
	p := a.wait("p1")
	exits(t, p, 7)
	if out := a.output("p1"); p.Key != "main" || out != "main with less in "+a.settings.Directory+"\n" {
		t.Errorf("got %q by %+v", out, p)
	}
	if list := a.must("List", Ask{}).List; len(list) != 1 {
		t.Errorf("it was started again: %+v", list)
	}
}

func TestMainProcessStartFailureIsReported(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(s *settings) { s.Main = []string{"no-such-server", "--port=1"} })
	a.appears("p1")
	p := a.wait("p1")
	exits(t, p, 127)
	if p.Command != "no-such-server --port=1" || !strings.Contains(p.Note, "PATH") {
		t.Errorf("got %+v", p)
	}
}

func TestKeyOfMainProcessIsReserved(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	refusal(t, a.ask("Start", Ask{Key: "main", Request: protocol.StartRequest{Command: "true"}}), protocol.BadRequest)
}

func TestWaitEndsOnEventOrTimeout(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := a.start("mkfifo tube; echo ready; read line < tube; echo \"$line\"; sleep 60")
	a.until(p.ID, "ready\n")
	before := a.must("Wait", Ask{ID: p.ID, Wait: 10 * time.Millisecond}).Process
	if before.State != protocol.Running || !before.EndedAt.IsZero() {
		t.Fatalf("got %+v", before)
	}
	done := make(chan protocol.Process, 1)
	go func() {
		var reply Reply
		if err := a.client.Call("Service.WaitOutput", Ask{ID: p.ID, From: 6, Wait: patience}, &reply); err != nil {
			t.Error(err)
		}
		done <- reply.Process
	}()
	a.run("echo go > tube")
	if got := <-done; got.OutputBytes != 9 || got.State != protocol.Running {
		t.Errorf("got %+v", got)
	}
	refusal(t, a.ask("Get", Ask{ID: "p77"}), protocol.NotFound)
	refusal(t, a.ask("Get", Ask{ID: "../p1"}), protocol.NotFound)
	refusal(t, a.ask("Output", Ask{ID: p.ID, From: -1}), protocol.BadRequest)
}

func TestInfoHasShellAndRunningCommands(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.start("sleep 60")
	a.run("true")
	if reply := a.must("List", Ask{}); reply.Shell != "/bin/sh" || reply.Running != 1 || len(reply.List) != 2 ||
		reply.List[0].ID != "p2" || reply.List[1].ID != "p1" {
		t.Errorf("got %+v", reply)
	}
}
