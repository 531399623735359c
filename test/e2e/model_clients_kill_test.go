// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
)

// steady is a port of this machine that leads to the gateway whatever becomes of its pods: where there is none, a
// connection waits.
type steady struct {
	w        *world
	listener net.Listener
	serving  sync.WaitGroup

	mu     sync.Mutex
	target string
}

// steadily opens such a port, which leads to the gateway as at does.
func (w *world) steadily(at outside) *steady {
	w.t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	check.OK(w.t, err)
	s := &steady{w: w, listener: listener}
	s.leads(at)
	s.serving.Go(s.serve)
	w.t.Cleanup(func() { _ = listener.Close(); s.serving.Wait() })
	return s
}

// outside is where programs find the namespace by that port.
func (s *steady) outside(token string) outside {
	return outside{"http://" + s.listener.Addr().String(), s.w.ns, token}
}

// leads has the port lead where at does.
func (s *steady) leads(at outside) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.target = strings.TrimPrefix(at.gateway, "http://")
}

// waits has new connections wait until the port leads somewhere again.
func (s *steady) waits() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.target = ""
}

func (s *steady) serve() {
	for {
		from, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.serving.Go(func() { s.carry(from) })
	}
}

// carry carries a connection until one of its ends is closed, or the test is over.
func (s *steady) carry(from net.Conn) {
	defer func() { _ = from.Close() }()
	for s.w.t.Context().Err() == nil {
		s.mu.Lock()
		target := s.target
		s.mu.Unlock()
		if target == "" {
			<-time.After(50 * time.Millisecond)
			continue
		}
		to, err := net.Dial("tcp4", target)
		if err != nil {
			return
		}
		defer func() { _ = to.Close() }()
		ended := make(chan struct{}, 2)
		for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
			go func() { _, _ = io.Copy(pair[1], pair[0]); ended <- struct{}{} }() // An end of it is why it ends.
		}
		select {
		case <-ended:
		case <-s.w.t.Context().Done():
		}
		return
	}
}

// ran is what became of a program.
type ran struct{ name, said, complained string }

func TestClientsReceiveReplyDespiteManagerAndGatewayKill(t *testing.T) {
	localnode.Needed(t)
	dir := modelClients(t)
	w := newWorld(t, reply(words(storyWords, 2*storyPace)))
	first := w.byGateway()
	port := w.steadily(first)
	at := port.outside(first.token)
	programs := map[string]*exec.Cmd{
		"codex": w.codexCommand(t.TempDir(), at, "--skip-git-repo-check", "Tell me a story, codex.")}
	for _, name := range []string{"responses", "completions", "ai", "anthropic"} {
		program := exec.CommandContext(t.Context(), "node", "again.mjs", name, "Tell me a story, "+name+".")
		program.Dir = dir
		program.Env = append(os.Environ(), "OPENAI_URL="+at.openaiURL(), "ANTHROPIC_URL="+at.anthropicURL(),
			"API_KEY="+at.token)
		programs[name] = program
	}
	ends := make(chan ran, len(programs))
	for name, program := range programs {
		var said, complained bytes.Buffer
		program.Stdout, program.Stderr = &said, &complained
		check.OK(t, program.Start())
		go func() {
			err := program.Wait()
			ends <- ran{name, strings.TrimSpace(said.String()), fmt.Sprintf("%v\n%s", err, complained.String())}
		}()
	}
	w.eventually("every client is answered", func() bool { return len(w.requests()) == len(programs) })
	killManager(t)
	port.waits()
	w.killGateway()
	port.leads(w.byGateway())
	for range programs {
		if end := <-ends; end.said != strings.TrimSpace(wholeStory()) {
			t.Errorf("%s heard %q: %s", end.name, end.said, end.complained)
		} else if end.name != "codex" && !strings.Contains(end.complained, "lost 1 times") {
			t.Errorf("%s has lost nothing: %s", end.name, end.complained)
		}
	}
	if n := len(w.requests()); n != len(programs) {
		t.Errorf("the model was called %d times", n)
	}
}
