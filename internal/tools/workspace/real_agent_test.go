// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realagent"
	"parley.dev/parley/test/kit/waiting"
)

func TestMain(m *testing.M) { os.Exit(realagent.Main(m)) }

// real is the tools at an agent that is a program of its own.
type real struct {
	*bench
	agent *realagent.Agent
	// files is the workspace's directory.
	files   string
	program *exec.Cmd
}

// patience is how long tests wait for other processes.
const patience = 30 * time.Second

// newReal starts an agent whose workspace belongs to the chat.
func newReal(t *testing.T) *real {
	t.Helper()
	a := realagent.Start(t)
	r := &real{bench: newBench(t), agent: a, files: a.Files, program: a.Program}
	r.tools = map[string]tools.Tool{}
	for _, tool := range Tools(Options{Workspaces: only{client: a.Client()}, Now: time.Now}) {
		r.tools[tool.Definition().Name] = tool
	}
	return r
}

// running are the processes below the agent whose command lines have a text.
func (r *real) running(text string) (pids []int) {
	for _, p := range r.agent.Running(text) {
		pids = append(pids, p.PID)
	}
	return pids
}

// run makes a call of execute under a key of its own.
func (r *real) run(command string, arguments string) map[string]any {
	r.t.Helper()
	r.calls++
	return r.good("execute", fmt.Sprintf(`{"command":%s%s}`, quote(command), arguments))
}

// Security (a hostile model): can run any command in its workspace, and lose the files there.
func TestARealAgentRunsCommands(t *testing.T) {
	r := newReal(t)
	for name, c := range map[string]struct {
		command, arguments string
		output             string
		code               float64
	}{
		"output and errors together":  {"echo out; echo err >&2; exit 3", "", "out\nerr\n", 3},
		"in the workspace":            {"pwd", "", r.files + "\n", 0},
		"in a directory of it":        {"mkdir -p sub && cd sub && pwd", "", r.files + "/sub\n", 0},
		"for agents":                  {"echo $PAGER $TERM", "", "cat dumb\n", 0},
		"without input":               {"cat; echo end", "", "end\n", 0},
		"bytes that are no UTF-8":     {`printf 'a\377b\303'`, "", "a\ufffdb\ufffd", 0},
		"a progress line":             {`for i in 1 2 3; do printf "$i%%\r"; done; echo done`, "", "done\n", 0},
		"colours and titles":          {`printf '\033[31mred\033[0m\033]0;t\007!'`, "", "red!", 0},
		"an ampersand that is quoted": {`echo "a &"`, "", "a &\n", 0},
		"a command that is not there": {"nothing-of-that-name 2>/dev/null", "", "", 127},
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			got := r.run(c.command, c.arguments)
			fields(t, got, map[string]any{"output": c.output, "exit_code": c.code, "success": (c.code == 0)})
		})
	}
	r.t = t
	check.Equal[any](t, "with a directory", r.files+"/sub\n", r.run("pwd", `,"workdir":"sub"`)["output"])
	r.calls++
	check.Contains(t, r.fail("execute", `{"command":"true","workdir":"missing"}`), "missing")
}

func TestRealAgentKeepsHeadAndTailOfOutput(t *testing.T) {
	r := newReal(t)
	got := r.run("echo begun; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo ended", `,"timeout":60`)
	output, _ := got["output"].(string)
	if !strings.HasPrefix(output, "begun\nxxx") || !strings.HasSuffix(output, "xxx\nended\n") || got["truncated"] != true ||
		len(output) > maxOutput {
		t.Errorf("got %d bytes: %.30q ... %q", len(output), output, output[max(0, len(output)-30):])
	}
	if seen := r.seen(); len(seen) > maxShown+showBytes {
		t.Errorf("shown were %d bytes", len(seen))
	}
}

func TestRealAgentKeepsCommandRunningAfterTimeout(t *testing.T) {
	r := newReal(t)
	got := r.run("echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended", `,"timeout":1`)
	id, _ := got["background_process_id"].(string)
	if got["success"] != false || got["output"] != "begun\n" || id == "" {
		t.Fatalf("got %v", got)
	}
	if list := r.good("process_list", "{}")["processes"].([]any); len(list) != 1 ||
		list[0].(map[string]any)["state"] != "running" {
		t.Errorf("listed are %v", list)
	}
	r.good("write_file", `{"path":"go","content":""}`)
	got = r.good("process_output", `{"process_id":"`+id+`","wait_timeout":30}`)
	fields(t, got, map[string]any{"state": "exited", "output": "begun\nended\n"})
	if !strings.Contains(r.seen(), "begun\n") {
		t.Errorf("shown was %q", r.seen())
	}
}

func TestWhatARealCommandLeavesBehindRunsOn(t *testing.T) {
	r := newReal(t)
	const command = "setsid env -i sleep 77777 >/dev/null 2>&1 & echo started"
	if got := r.run(command, ""); got["success"] != true || got["output"] != "started\n" {
		t.Fatalf("got %v", got)
	}
	var pid string
	waiting.Until(t, patience, "it has become another program", func() bool {
		for _, p := range r.running("sleep\x0077777") {
			pid = fmt.Sprint(p)
		}
		return pid != "" && len(r.running("env\x00-i")) == 0 // It is setsid first, then env, and then sleep.
	})
	list, _ := r.good("process_list", "{}")["processes"].([]any)
	if got := fmt.Sprint(list); len(list) != 1 || !strings.Contains(got, "state:running") ||
		!strings.Contains(got, command) || !strings.Contains(got, "descendants:[map[command:sleep 77777 pid:"+pid) {
		t.Errorf("listed is %s", got)
	}
	note := "The command has exited, and what it has started runs on as process p1: " + pid + " (sleep 77777). " +
		"process_signal ends it."
	fields(t, r.good("process_output", `{"process_id":"p1","wait_timeout":1}`), map[string]any{
		"state": "running", "exit_code": 0.0, "note": note})
	for _, want := range []string{"", "It had ended before."} {
		got := r.good("process_signal", `{"process_id":"p1","signal":"terminate"}`)
		if note, _ := got["note"].(string); got["state"] != "exited" || note != want {
			t.Errorf("signalled: %v", got)
		}
	}
	waiting.Until(t, patience, "nothing of it is left", func() bool { return len(r.running("77777")) == 0 })
}

func TestMCPServerProcessesAreListedWhileRunning(t *testing.T) {
	r := newReal(t)
	s, err := r.agent.Client().Speak(t.Context(), protocol.StartRequest{Argv: []string{"sh", "-c", "read go; echo oh >&2"}})
	check.OK(t, err)
	defer s.Close()
	if list := fmt.Sprint(r.good("process_list", "{}")); !strings.Contains(list, "read go") {
		t.Errorf("while it runs, listed are %s", list)
	}
	_, _ = io.WriteString(s, "go\n")
	if rest, err := io.ReadAll(s); err != nil || len(rest) > 0 {
		t.Errorf("it says %q, %v", rest, err)
	}
	if list := fmt.Sprint(r.good("process_list", "{}")); strings.Contains(list, "read go") {
		t.Errorf("once it has ended, listed are %s", list)
	}
	if got := r.good("process_output", `{"process_id":"`+s.ID+`"}`); got["output"] != "oh\n" {
		t.Errorf("of its output the model reads %v", got)
	}
}

func TestRealAgentKillsBackgroundCommandsOnSignal(t *testing.T) {
	r := newReal(t)
	id, _ := r.run("trap '' TERM; echo up; while :; do sleep 0.1; done &", "")["background_process_id"].(string)
	waiting.Until(t, patience, "it is up", func() bool {
		return r.good("process_output", `{"process_id":"`+id+`","wait_timeout":0}`)["output"] == "up\n"
	})
	if got := r.good("process_signal", `{"process_id":"`+id+`","signal":"terminate"}`); got["state"] != "running" {
		t.Errorf("one that ignores it: %v", got)
	}
	check.Equal(t, "killed", "SIGKILL", r.good("process_signal", `{"process_id":"`+id+`","signal":"kill"}`)["signal"])
	if got := r.good("process_signal", `{"process_id":"`+id+`","signal":"kill"}`); got["note"] != "It had ended before." {
		t.Errorf("once more: %v", got)
	}
}

func TestInterruptLeavesNoProcessesOfRealCommand(t *testing.T) {
	r := newReal(t)
	go func() {
		waiting.Until(t, patience, "it is up", func() bool { return strings.Contains(r.seen(), "up") })
		r.interrupt()
	}()
	// The shell ends when it is told to, one child does not, and one has a session of its own.
	got := r.run("(trap '' TERM; exec sleep 54321) & setsid sleep 54322 & echo up; wait", `,"timeout":600`)
	fields(t, got, map[string]any{
		"error": "the chat was interrupted, and the command was ended", "signal": "SIGTERM"})
	waiting.Until(t, patience, "nothing of it is left", func() bool { return len(r.running("5432")) == 0 })
}

func TestRetriedCallIsIdempotentOnRealAgent(t *testing.T) {
	r := newReal(t)
	const command = `{"command":"echo x >> count; cat count"}`
	first, second := r.good("execute", command), r.good("execute", command)
	if first["output"] != "x\n" || second["output"] != "x\n" {
		t.Errorf("got %v and %v", first, second)
	}
	r.calls++
	r.good("write_file", `{"path":"f","content":"a b"}`)
	r.calls++
	const edit = `{"edits":[{"path":"f","old_text":"a b","new_text":"a b a b"}]}`
	for range 2 {
		got := r.good("edit_files", edit)
		if files, _ := got["files"].([]any); len(files) != 1 || !has(files[0].(map[string]any)["diff"], "+a b a b") {
			t.Errorf("got %v", got)
		}
	}
	r.calls++
	check.Equal(t, "content", "1\ta b a b", r.good("read_file", `{"path":"f"}`)["content"])
}

func TestARealAgentReadsWritesEditsAndSearches(t *testing.T) {
	r := newReal(t)
	next := func(tool, input string) map[string]any {
		t.Helper()
		r.calls++
		return r.good(tool, input)
	}
	fields(t, next("write_file", `{"path":"src/a b.txt","content":"one\r\ntwo\nthree"}`), map[string]any{
		"created": true, "path": "src/a b.txt"})
	want := map[string]any{"content": "1\tone\r\n2\ttwo\n3\tthree", "file_size": 14.0, "total_lines": 3.0, "lines_read": 3.0,
		"note": "The last line does not end with a newline."}
	if got := next("read_file", `{"path":"`+r.files+`/src/a b.txt"}`); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("read: %v", got)
	}
	fields(t, next("read_file", `{"path":"src/a b.txt","offset":2,"limit":1}`), map[string]any{
		"content": "2\ttwo\n", "note": "The file has 3 lines: continue at offset 3."})
	got := next("edit_files", `{"edits":[{"path":"src/a b.txt","old_text":"two\n","new_text":"2\n"},`+
		`{"path":"new.txt","old_text":"","new_text":"new\n"}]}`)
	if files, _ := got["files"].([]any); len(files) != 2 || !has(files[0].(map[string]any)["diff"], "-two\n+2\n") {
		t.Errorf("edited: %v", got)
	}
	got = next("search_files", `{"pattern":"^(2|new)$"}`)
	if files, _ := got["files"].([]any); len(files) != 2 || files[0].(map[string]any)["path"] != "new.txt" {
		t.Errorf("found: %v", got)
	}
	if got := next("search_files", `{"glob":"**/*.txt","path":"src"}`); len(got["files"].([]any)) != 1 {
		t.Errorf("found by name: %v", got)
	}
	check.OK(t, os.WriteFile(filepath.Join(r.files, "logo.png"), []byte("\x89PNG\r\n\x1a\n\x00\xff"), 0o600))
	got = next("attach_file", `{"path":"logo.png","name":"../our\\logo.png"}`)
	if len(r.attached) != 1 || got["name"] != "our_logo.png" || got["media_type"] != "image/png" {
		t.Errorf("attached: %v, %+v", got, r.attached)
	} else if content, err := r.attached[0].Content(); err != nil || string(content) != "\x89PNG\r\n\x1a\n\x00\xff" {
		t.Errorf("its content is %q, %v", content, err)
	}
	check.OK(t, os.WriteFile(filepath.Join(r.files, "large"), make([]byte, maxAttached+1), 0o600))
	for input, want := range map[string]string{
		`attach_file {"path":"large"}`:                                               "a file may have 512 KiB",
		`attach_file {"path":"missing"}`:                                             "(NotFound)",
		`attach_file {"path":"/etc/hostname"}`:                                       "(OutsideWorkspace)",
		`read_file {"path":"logo.png"}`:                                              "attach_file shows it",
		`read_file {"path":"missing"}`:                                               "(NotFound)",
		`read_file {"path":"../keys.json"}`:                                          "(OutsideWorkspace)",
		`read_file {"path":"/etc/passwd"}`:                                           "(OutsideWorkspace)",
		`read_file {"path":"src"}`:                                                   "(NotRegular)",
		`write_file {"path":"../x","content":""}`:                                    "(OutsideWorkspace)",
		`edit_files {"edits":[{"path":"new.txt","old_text":"old","new_text":""}]}`:   "(NoMatch)",
		`edit_files {"edits":[{"path":"src/a b.txt","old_text":"e","new_text":""}]}`: "(NotUnique)",
		`search_files {"pattern":"("}`:                                               "(BadRequest)",
	} {
		r.calls++
		tool, arguments, _ := strings.Cut(input, " ")
		check.Contains(t, r.fail(tool, arguments), want)
	}
}

// Security (a hostile model): cannot call the workspace of another chat, of this namespace or of another one. Also
// TestWorkspaceAcceptsOnlyGenerationPodsOfItsChat of test/e2e.
//
// Security (a hostile sub-chat): can work in the workspace of its family, which its parent reads.
func TestARealAgentServesItsOwnFamilyAlone(t *testing.T) {
	r := newReal(t)
	o := r.agent.Options
	o.Chat = "0f0f0f0f-0000-4000-8000-00000000000f"
	r.use(Options{Workspaces: only{client: client.New(o)}, Now: time.Now})
	check.Equal(t, "error", "the workspace's pod is that of another chat, and refuses to work for this one "+
		"(BoundToAnother): a person has to name another pod, or to recreate it", r.fail("process_list", "{}"))
}
