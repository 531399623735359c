// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"parley.dev/parley/internal/workspace/agent/proctree"
	"parley.dev/parley/internal/workspace/agent/supervisor"
	"parley.dev/parley/internal/workspace/protocol"
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
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), asProgram+"=yes")
	return c
}

func TestTheProgramCopiesItself(t *testing.T) {
	dir := t.TempDir()
	destination := filepath.Join(dir, "workspace-agent")
	if err := os.WriteFile(destination, []byte("an older one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := program(t, "copy-self", destination).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
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

func TestWhatCannotBeDoneIsSaid(t *testing.T) {
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
		{"mount the ConfigMap parley-issuer", []string{"init", "--pod-namespace=a", "--pod-uid=b"}},
		{"only process 1 starts a serving process", []string{"serve", "--pod-namespace=a", "--pod-uid=b", "--issuer=c"}},
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
	chat    string
}

// newWorkspace starts an agent for a pod, and proves to be a generation pod of its namespace.
func newWorkspace(t *testing.T, main ...string) *workspace {
	t.Helper()
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}}
	raw, err := json.Marshal(public)
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(dir, "keys.json")
	if err := os.WriteFile(keys, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, protocol.IssuerFile), []byte("https://issuer\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	token, err := jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: "https://issuer", Subject: "system:serviceaccount:team:parley-generation",
		Audience: jwt.Audience{protocol.Audience("team", "uid")}, IssuedAt: jwt.NewNumericDate(now),
		NotBefore: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(time.Hour)),
	}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	listen := freeAddress(t)
	w := &workspace{t: t, url: "http://" + listen, token: token}
	w.program = program(t, append([]string{"init", "--listen=" + listen, "--directory=" + filepath.Join(dir, "files"),
		"--state-dir=" + filepath.Join(dir, "state"), "--issuer-keys=" + keys, "--"}, main...)...)
	w.program.Env = append(w.program.Env, "PARLEY_POD_NAMESPACE=team", "PARLEY_POD_UID=uid")
	w.program.Dir = dir
	w.program.Stderr = os.Stderr
	if err := w.program.Start(); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, bytes.NewReader(raw))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	r.Header.Set(protocol.HeaderChat, w.chat)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %s: %s: %v: %s", method, path, response.Status, err, answer)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			w.t.Fatal(err)
		}
	}
	return string(answer)
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
	if err != nil {
		t.Fatal(err)
	}
	kib := map[string]int{"init": memoryKiB(t, w.program.Process.Pid, "status", "VmRSS")}
	var supervisors []int
	for _, p := range proctree.Below(all, w.program.Process.Pid) {
		switch line := p.CommandLine(100); {
		case strings.HasPrefix(line, "workspace-agent serve "):
			kib["serve"] = memoryKiB(t, p.PID, "status", "VmRSS")
		case line == supervisor.Name:
			supervisors = append(supervisors, p.PID)
		}
	}
	t.Logf("KiB: %v", kib)
	if len(kib) != 2 || !raceEnabled && (kib["init"] > 20<<10 || kib["serve"] > 30<<10) {
		t.Errorf("KiB: %v", kib)
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
		if err != nil {
			t.Fatal(err)
		}
		total["threads"] += len(tasks)
	}
	t.Logf("a hundred supervisors have, in KiB: %v", total)
	if own := total["Private_Clean"] + total["Private_Dirty"]; !raceEnabled && own > 100*2<<10 {
		t.Errorf("a hundred supervisors have %d KiB of their own", own)
	}
}

// memoryKiB is a figure that the kernel has of a process.
func memoryKiB(t *testing.T, pid int, file, field string) (kib int) {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(raw), field+":")
	if _, err := fmt.Sscan(after, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
