// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// traps puts what no tool should follow, open or wait for into the workspace, and beside it a file that nobody may
// touch.
func (r *real) traps() (canary string) {
	r.t.Helper()
	canary = filepath.Join(filepath.Dir(r.files), "canary")
	for _, err := range []error{
		os.WriteFile(canary, []byte("nobody may read or change this"), 0o600),
		os.Mkdir(filepath.Join(r.files, "dir"), 0o755),
		os.WriteFile(filepath.Join(r.files, "bytes"), []byte("a\xff\xfeb\n"), 0o644),
		os.WriteFile(filepath.Join(r.files, "bad\xffname"), []byte("a\n"), 0o644),
		os.WriteFile(filepath.Join(r.files, "sparse"), nil, 0o644),
		os.Truncate(filepath.Join(r.files, "sparse"), 10<<30),
		os.Symlink("../canary", filepath.Join(r.files, "out")),
		os.Symlink("/", filepath.Join(r.files, "top")),
		os.Symlink("loop", filepath.Join(r.files, "loop")),
		syscall.Mkfifo(filepath.Join(r.files, "pipe"), 0o666),
		// The device that everybody may make, and nobody can open.
		syscall.Mknod(filepath.Join(r.files, "device"), syscall.S_IFCHR|0o666, 0),
	} {
		check.OK(r.t, err)
	}
	return canary
}

// onFiles are calls of all tools that take the path of a file.
var onFiles = map[string]string{
	"read_file":    `{"path":%s}`,
	"write_file":   `{"path":%s,"content":"new"}`,
	"edit_files":   `{"edits":[{"path":%s,"old_text":"a","new_text":"b"}]}`,
	"attach_file":  `{"path":%s}`,
	"search_files": `{"path":%s,"pattern":"."}`,
}

// Security (a hostile workspace): cannot make the file tools read or write outside of its directory, or wait at a pipe
// or a device, by a path, a link, or one that changes meanwhile. Also FuzzNoPathLeadsOut,
// TestBadPathsAreRejectedByEveryOperation, TestSymlinkSwapDuringOperationCannotEscapeRoot of
// internal/workspace/agent/files.
func TestWhateverAPathLeadsToHasItsResult(t *testing.T) {
	r := newReal(t)
	canary := r.traps()
	const outside, irregular = "(OutsideWorkspace)", "(NotRegular)"
	for path, want := range map[string]map[string]string{
		"../canary":        {"": outside},
		canary:             {"": outside},
		"dir/../../canary": {"": outside},
		"out":              {"": outside},
		"top/etc/passwd":   {"": outside},
		"/etc/passwd":      {"": outside},
		"loop":             {"": "circle"},
		"pipe":             {"": irregular},
		"device":           {"": irregular},
		"dir":              {"": irregular, "search_files": ""},
		"a\x00b":           {"": "zero byte"},
		"bad\xffname": {"": "(NotFound)", "write_file": "", // What is no UTF-8 is no JSON either: it becomes U+FFFD.
			"search_files": "There is no file or directory"},
		"bytes":                          {"": "", "read_file": "not UTF-8 text", "edit_files": "(NotText)"},
		"sparse":                         {"": "512 KiB", "read_file": "not UTF-8 text", "edit_files": "(TooLarge)", "search_files": "", "write_file": ""},
		strings.Repeat("x/", 2040) + "x": {"": "elements"},
		strings.Repeat("x", 256):         {"": "too long"},
	} {
		for tool, input := range onFiles {
			says, ok := want[tool]
			if !ok {
				says = want[""]
			}
			if tool == "write_file" && says == "" {
				continue // It replaces what is there.
			}
			quoted, err := json.Marshal(path)
			check.OK(t, err)
			r.calls++
			_, err = r.call(tool, fmt.Sprintf(input, quoted))
			if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%s of %.60q: %v, want %q", tool, path, err, says)
			}
		}
	}
	if got, err := os.ReadFile(canary); err != nil || string(got) != "nobody may read or change this" {
		t.Errorf("what is outside has become %q: %v", got, err)
	}
	if info, err := os.Stat(filepath.Join(r.files, "sparse")); err != nil || info.Size() != 10<<30 {
		t.Errorf("the sparse file is %v: %v", info, err)
	}
}

func TestAHugeFileIsReplacedWithoutACopy(t *testing.T) {
	r := newReal(t)
	r.traps()
	r.calls++
	fields(t, r.good("write_file", `{"path":"sparse","content":"small"}`), map[string]any{
		"size": 5.0, "created": nil})
}

func TestTheLongestPatternIsTakenByTheAgent(t *testing.T) {
	r := newReal(t)
	longest := strings.Repeat("x", maxPattern)
	if got := r.good("search_files", `{"pattern":"`+longest+`","glob":"`+longest+`"}`); got["note"] != "Nothing matches." {
		t.Errorf("got %v", got)
	}
}

func TestInvalidWorkingDirectoryPreventsCommandStart(t *testing.T) {
	r := newReal(t)
	r.traps()
	for dir, want := range map[string]string{
		"sparse": "is no directory", "pipe": "is no directory", "device": "is no directory", "loop": "There is no directory",
		"missing": "There is no directory", "a\x00b": "NUL",
	} {
		quoted, err := json.Marshal(dir)
		check.OK(t, err)
		r.calls++
		check.Contains(t, r.fail("execute", fmt.Sprintf(`{"command":"touch ran","workdir":%s}`, quoted)), want)
	}
	if _, err := os.Stat(filepath.Join(r.files, "ran")); err == nil {
		t.Error("one has run")
	}
}

// Security (a hostile model): cannot see or name a process by a path.
func TestAProcessIsNamedOnlyByItsID(t *testing.T) {
	r := newReal(t)
	id, _ := r.run("sleep 60 &", "")["background_process_id"].(string)
	for _, wrong := range []string{"p999", "../../v1/info", id + "/signal", "..", id + "?wait=1", "1", "-1", "\n"} {
		quoted, err := json.Marshal(wrong)
		check.OK(t, err)
		for tool, input := range map[string]string{
			"process_output": `{"process_id":%s,"wait_timeout":0}`, "process_signal": `{"process_id":%s,"signal":"kill"}`,
		} {
			r.calls++
			if _, err := r.call(tool, fmt.Sprintf(input, quoted)); err == nil || !strings.Contains(err.Error(), "(NotFound)") {
				t.Errorf("%s of %q: %v", tool, wrong, err)
			}
		}
	}
	if got := r.good("process_output", `{"process_id":"`+id+`","wait_timeout":0}`); got["state"] != "running" {
		t.Errorf("what runs is %v", got)
	}
}

// Security (a hostile workspace): cannot keep a command alive that was killed, or whose chat was interrupted while the
// call waited for it, by forks, ignored signals, daemons, its own sessions or environment, or by the end of its
// supervisor. Also TestInterruptKillsCommandThatIgnoresSignals of internal/tools/workspace;
// TestKillEndsOnlyTheCommandAndItsDescendants, TestDescendantsHaveEverySignal, TestACommandEndsWithItsSupervisor,
// TestACommandThatKillsAllIsKilled of internal/workspace/agent/process.
func TestKillEndsForkingCommandWithAllDescendants(t *testing.T) {
	r := newReal(t)
	// Some stay its children, some are left to process 1, some have sessions of their own, and all ignore what asks them.
	id, _ := r.run(`trap '' TERM
		for i in $(seq 30); do sleep 65431 & (sleep 65432 &); setsid sleep 65433 & done
		echo forked; wait &`, "")["background_process_id"].(string)
	waiting.Until(t, patience, "all are there", func() bool { return len(r.running("sleep\x006543")) == 90 })
	r.calls++
	r.good("process_signal", `{"process_id":"`+id+`","signal":"kill"}`)
	waiting.Until(t, patience, "nothing of it is left", func() bool { return len(r.running("6543")) == 0 })
}

func TestInterruptKillsCommandThatIgnoresSignals(t *testing.T) {
	r := newReal(t)
	go func() {
		waiting.Until(t, patience, "it is up", func() bool { return strings.Contains(r.seen(), "up") })
		r.interrupt()
	}()
	got := r.run("trap '' TERM INT HUP; setsid sleep 65434 & echo up; while :; do sleep 0.1; done", `,"timeout":600`)
	check.Equal(t, "signal that ended the command", any("SIGKILL"), got["signal"])
	waiting.Until(t, patience, "nothing of it is left", func() bool { return len(r.running("65434")) == 0 })
}

// Security (a hostile workspace): can forge its own agent's records: output, ends of commands, which chat it belongs
// to.
func TestACommandCanForgeWhatItsAgentRemembers(t *testing.T) {
	r := newReal(t)
	id, _ := r.run("echo true; sleep 60 &", "")["background_process_id"].(string)
	waiting.Until(t, patience, "it has written", func() bool { return r.output(id) == "true\n" })
	forged := r.run("printf lie! > ../state/processes/"+id+"/output.0", "")
	// All of a workspace has one user: it speaks for itself alone.
	if got := r.output(id); forged["success"] != true || got != "lie!\n" && got != "lie!" {
		t.Errorf("got %v, and then %q", forged, got)
	}
}

// output is what a process has written so far.
func (r *real) output(id string) any {
	r.calls++
	return r.good("process_output", `{"process_id":"`+id+`","wait_timeout":0}`)["output"]
}
