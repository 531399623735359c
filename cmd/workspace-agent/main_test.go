// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley.dev/parley/api/changes"
	"parley.dev/parley/internal/workspace/agent/proctree"
	"parley.dev/parley/internal/workspace/agent/supervisor"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/tokens"
	"parley.dev/parley/test/kit/waiting"
)

// asProgram makes the test binary the program, and what that starts, too.
const asProgram = "TEST_WORKSPACE_AGENT"

const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	check.OK(t, err)
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), asProgram+"=yes")
	return c
}

func TestTheProgramCopiesItself(t *testing.T) {
	dir := t.TempDir()
	destination := filepath.Join(dir, "workspace-agent")
	check.OK(t, os.WriteFile(destination, []byte("an older one"), 0o600))
	if out, err := program(t, "copy-self", destination).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	self, err := os.Executable()
	check.OK(t, err)
	want, err := os.ReadFile(self)
	check.OK(t, err)
	got, err := os.ReadFile(destination)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the copy has %d bytes: %v", len(got), err)
	}
	info, err := os.Stat(destination)
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("got %v: %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("there are %v: %v", entries, err)
	}
}

func TestErrorsEndTheProgramWithTheirReason(t *testing.T) {
	dir := t.TempDir()
	pod := []string{"init", "--pod-namespace=a", "--pod-uid=b"}
	served := append(pod, "--issuer=c", "--allow-subject=d,e", "--state-dir="+filepath.Join(dir, "state"))
	for _, c := range []struct {
		says string
		args []string
	}{
		{"usage", nil},
		{"usage", []string{"nothing"}},
		{"usage", []string{"copy-self"}},
		{"no such file or directory", []string{"copy-self", "/missing/agent"}},
		{"--pod-namespace and --pod-uid are required", []string{"init"}},
		{"flag provided but not defined", []string{"init", "--nothing"}},
		{"mount the ConfigMap parley-issuer", pod},
		{"creating the workspace's directory", append(served, "--directory=/dev/null/files")},
		{"listening for generation pods", append(served, "--directory="+dir, "--listen=nowhere")},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			out, err := program(t, c.args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.says) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// workspace is a running agent.
type workspace struct {
	t       *testing.T
	program *exec.Cmd
	url     string
	token   string
	viewer  string // the token of a gateway
	chat    string
}

// newWorkspace starts an agent for a pod, and proves to be a generation pod of its namespace.
func newWorkspace(t *testing.T, main ...string) *workspace {
	t.Helper()
	dir, cluster := t.TempDir(), tokens.New(t)
	keys := filepath.Join(dir, "keys.json")
	check.OK(t, os.WriteFile(keys, cluster.KeySet(), 0o600))
	check.OK(t, os.WriteFile(filepath.Join(dir, protocol.IssuerFile), []byte(tokens.Issuer+"\n"), 0o600))
	const gateway = "system:serviceaccount:parley-system:parley-gateway"
	check.OK(t, os.WriteFile(filepath.Join(dir, protocol.ViewersFile), []byte(gateway+"\n"), 0o600))
	listen := freeAddress(t)
	w := &workspace{t: t, url: "http://" + listen, token: cluster.Sign(tokens.FirstKey, tokens.Claims(
		"system:serviceaccount:team:parley-generation", protocol.Audience("team", "uid"), time.Now())),
		viewer: cluster.Sign(tokens.FirstKey, tokens.Claims(gateway, protocol.Audience("team", "uid"), time.Now()))}
	w.program = program(t, append([]string{"init", "--listen=" + listen, "--directory=" + filepath.Join(dir, "files"),
		"--state-dir=" + filepath.Join(dir, "state"), "--issuer-keys=" + keys, "--"}, main...)...)
	w.program.Env = append(w.program.Env, "PARLEY_POD_NAMESPACE=team", "PARLEY_POD_UID=uid")
	w.program.Dir, w.program.Stderr = dir, os.Stderr
	check.OK(t, w.program.Start())
	t.Cleanup(func() {
		_ = w.program.Process.Signal(syscall.SIGTERM) // It may have ended.
		_ = w.program.Wait()
	})
	waiting.Until(t, patience, "the agent is at work", w.healthy)
	return w
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	defer l.Close()
	return l.Addr().String()
}

func (w *workspace) healthy() bool {
	response, err := http.Get(w.url + "/v1/health")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// ask makes a request with a body of JSON, and returns the body of the answer.
func (w *workspace) ask(method, path string, body, into any) string {
	w.t.Helper()
	raw, err := json.Marshal(body)
	check.OK(w.t, err)
	response, answer := w.try(method, path, string(raw))
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %s: %s: %s", method, path, response.Status, answer)
	}
	if into != nil {
		check.OK(w.t, json.Unmarshal([]byte(answer), into))
	}
	return answer
}

// try makes a request, whatever the answer is.
func (w *workspace) try(method, path, body string) (*http.Response, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	check.OK(w.t, err)
	r.Header.Set("Authorization", "Bearer "+w.token)
	r.Header.Set(protocol.HeaderChat, w.chat)
	response, err := http.DefaultClient.Do(r)
	check.OK(w.t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	check.OK(w.t, err)
	return response, string(answer)
}

// bind makes the workspace that of a chat.
func (w *workspace) bind(chat string) {
	w.t.Helper()
	w.chat = chat
	w.ask("PUT", "/v1/binding", protocol.Binding{Chat: chat}, nil)
}

func TestAgentServesFilesCommandsAndMainProcess(t *testing.T) {
	w := newWorkspace(t, "sh", "-c", "pwd; exit 5")
	w.bind("chat")
	var info protocol.Info
	w.ask("GET", "/v1/info", nil, &info)
	if info.Shell != "/bin/sh" || info.Directory != filepath.Join(w.program.Dir, "files") {
		t.Errorf("got %+v", info)
	}
	waiting.Until(t, patience, "the main process was started", func() bool {
		var list protocol.ProcessList
		w.ask("GET", "/v1/processes", nil, &list)
		return len(list.Processes) == 1
	})
	var main protocol.Process
	w.ask("GET", "/v1/processes/p1?wait=30", nil, &main)
	if main.Key != "main" || main.ExitCode == nil || *main.ExitCode != 5 {
		t.Errorf("the main process is %+v", main)
	}
	if out := w.ask("GET", "/v1/processes/p1/output", nil, nil); out != w.program.Dir+"\n" {
		t.Errorf("it has written %q", out)
	}
	var p protocol.Process
	command := "echo hello > greeting; env | grep -e POD -e PARLEY_; echo up; exec sleep 60"
	w.ask("PUT", "/v1/processes/chat-1-1", protocol.StartRequest{Command: command}, &p)
	if out := w.ask("GET", "/v1/processes/"+p.ID+"/output?wait=30", nil, nil); out != "up\n" {
		t.Errorf("of the agent's settings it has %q", out)
	}
	if content := w.ask("GET", "/v1/files?path=greeting", nil, nil); content != "hello\n" {
		t.Errorf("got %q", content)
	}
	w.ask("POST", "/v1/processes/"+p.ID+"/signal", protocol.SignalRequest{Signal: protocol.Kill}, nil)
	w.ask("GET", "/v1/processes/"+p.ID+"?wait=30", nil, &p)
	if p.Signal != "SIGKILL" {
		t.Errorf("got %+v", p)
	}
}

func TestViewersSeeWhatCommandsChanged(t *testing.T) {
	w := newWorkspace(t)
	w.bind("chat")
	const command = `set -e; export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
git init -q app; cd app; echo one > a.txt; git add -A
git -c user.name=a -c user.email=a@b commit -qm "Add a"; echo two >> a.txt; echo note > ../note.txt`
	var p protocol.Process
	w.ask("PUT", "/v1/processes/k", protocol.StartRequest{Command: command}, &p)
	w.ask("GET", "/v1/processes/"+p.ID+"?wait=30", nil, &p)
	if p.ExitCode == nil || *p.ExitCode != 0 {
		t.Fatalf("got %+v: %s", p, w.ask("GET", "/v1/processes/"+p.ID+"/output", nil, nil))
	}
	generator := w.token
	w.token = w.viewer
	var got changes.Changes
	w.ask("GET", "/v1/changes", nil, &got)
	if len(got.Repositories) != 1 || len(got.Files) != 1 || len(got.Notes) > 0 || got.Repositories[0].Error != "" ||
		len(got.Repositories[0].Files) != 1 {
		t.Fatalf("got %+v", got)
	}
	check.Contains(t, got.Repositories[0].Files[0].Diff, "\n+one\n+two\n")
	check.Contains(t, w.ask("GET", "/v1/patch?repository=app", nil, nil), "+++ b/a.txt\n")
	w.token = generator
	var list protocol.ProcessList
	w.ask("GET", "/v1/processes", nil, &list)
	check.Equal(t, "commands", 1, len(list.Processes))
}

func TestAnAgentIsSmall(t *testing.T) {
	w := newWorkspace(t)
	w.bind("chat")
	for i := range 100 {
		start := protocol.StartRequest{Command: "echo up; exec sleep 60"}
		w.ask("PUT", fmt.Sprint("/v1/processes/k", i), start, nil)
	}
	for i := range 100 {
		w.ask("GET", fmt.Sprintf("/v1/processes/p%d/output?wait=30", i+1), nil, nil)
	}
	all, err := proctree.All()
	check.OK(t, err)
	kib := memoryKiB(t, w.program.Process.Pid, "status", "VmRSS")
	t.Logf("the agent has %d KiB", kib)
	if !raceEnabled() && kib > 30<<10 {
		t.Errorf("the agent has %d KiB", kib)
	}
	var supervisors []int
	for _, p := range proctree.Below(all, w.program.Process.Pid) {
		if p.CommandLine(100) == supervisor.Name {
			supervisors = append(supervisors, p.PID)
		}
	}
	supervisorsAreSmall(t, supervisors)
}

// supervisorsAreSmall checks what a hundred supervisors need. Only root may look.
func supervisorsAreSmall(t *testing.T, pids []int) {
	t.Helper()
	if len(pids) != 100 {
		t.Errorf("%d supervisors", len(pids))
	}
	if os.Geteuid() != 0 {
		t.Log("only root may look into supervisors")
		return
	}
	total := map[string]int{}
	for _, pid := range pids {
		for _, field := range []string{"Rss", "Pss", "Anonymous", "Private_Clean", "Private_Dirty"} {
			total[field] += memoryKiB(t, pid, "smaps_rollup", field)
		}
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		check.OK(t, err)
		total["threads"] += len(tasks)
	}
	t.Logf("a hundred supervisors have, in KiB: %v", total)
	if own := total["Private_Clean"] + total["Private_Dirty"]; !raceEnabled() && own > 100*2<<10 {
		t.Errorf("a hundred supervisors have %d KiB of their own", own)
	}
}

// raceEnabled reports whether the race detector takes memory of its own.
func raceEnabled() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// memoryKiB is a figure that the kernel has of a process.
func memoryKiB(t *testing.T, pid int, file, field string) (kib int) {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	check.OK(t, err)
	_, after, _ := strings.Cut(string(raw), field+":")
	if _, err := fmt.Sscan(after, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}

func TestCommandOutputIsReadableByOffset(t *testing.T) {
	w := newWorkspace(t)
	w.bind("chat")
	var p protocol.Process
	command := protocol.StartRequest{Command: `printf '0123456789\000\377'; exec sleep 60`}
	w.ask("PUT", "/v1/processes/chat-1-1", command, &p)
	for _, c := range []struct{ query, body, from string }{
		{"?wait=30", "0123456789\x00\xff", "0"}, // The others need not wait.
		{"?from=3&limit=4&wait=30", "3456", "3"},
		{"?from=10", "\x00\xff", "10"},
		{"?from=12", "", "12"},
	} {
		response, body := w.try("GET", "/v1/processes/"+p.ID+"/output"+c.query, "")
		if response.StatusCode != 200 || body != c.body || response.Header.Get(protocol.HeaderOutputFrom) != c.from ||
			response.Header.Get(protocol.HeaderOutputTotal) != "12" {
			t.Errorf("%s: got %q, %v", c.query, body, response.Header)
		}
	}
	w.ask("POST", "/v1/processes/"+p.ID+"/signal", protocol.SignalRequest{Signal: protocol.Terminate}, nil)
	w.ask("GET", "/v1/processes/"+p.ID+"?wait=30", nil, &p)
	if p.State != protocol.Exited || p.Signal != "SIGTERM" {
		t.Errorf("got %+v", p)
	}
}

func TestRefusalsOfTheManagerKeepTheirCodes(t *testing.T) {
	w := newWorkspace(t)
	w.bind("chat")
	for _, tt := range []struct {
		method, path, body string
		status             int
		code               protocol.ErrorCode
	}{
		{"GET", "/v1/processes/p99", "", 404, protocol.NotFound},
		{"GET", "/v1/processes/p99/output", "", 404, protocol.NotFound},
		{"POST", "/v1/processes/p99/signal", `{"signal":"kill"}`, 404, protocol.NotFound},
		{"PUT", "/v1/processes/key", `{}`, 400, protocol.BadRequest},
		{"PUT", "/v1/processes/key2", `{"argv":["/no/such/program"]}`, 422, protocol.CannotStart},
	} {
		response, body := w.try(tt.method, tt.path, tt.body)
		var refused protocol.Error
		if err := json.Unmarshal([]byte(body), &refused); err != nil || refused.Code != tt.code ||
			response.StatusCode != tt.status {
			t.Errorf("%s %s: got %s: %s", tt.method, tt.path, response.Status, body)
		}
	}
}

// TestStopReportsCommandSignalToWaitingClients: nobody can ask for it later, because the pod is gone.
func TestStopReportsCommandSignalToWaitingClients(t *testing.T) {
	for i := range 5 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w := newWorkspace(t)
			w.bind("chat")
			var p protocol.Process
			w.ask("PUT", "/v1/processes/k", protocol.StartRequest{Command: "echo up; exec sleep 60"}, &p)
			w.ask("GET", "/v1/processes/"+p.ID+"/output?wait=30", nil, nil)
			// It is asked before the workspace is stopped, or a moment later, when nobody has been told of an end.
			go func() { _ = w.program.Process.Signal(syscall.SIGTERM) }()
			w.ask("GET", "/v1/processes/"+p.ID+"?wait=30", nil, &p)
			if p.State != protocol.Exited || p.Signal != "SIGTERM" {
				t.Errorf("the command is %+v", p)
			}
			if out := w.ask("GET", "/v1/processes/"+p.ID+"/output", nil, nil); out != "up\n" {
				t.Errorf("it has written %q", out)
			}
		})
	}
}
