// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeworkspace is the HTTP side of a workspace's agent, in memory. Tests say what its commands do and what its
// files hold.
package fakeworkspace

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

// Token is the one that the agent takes, and Chat the chat that it belongs to.
const (
	Token = "good"
	Chat  = "0f0f0f0f-0000-4000-8000-000000000001"
)

// Agent is one of a workspace. Set its functions before it is asked.
type Agent struct {
	// Run is what a command does, in a goroutine of its own, which must end when the process has. With the test all
	// processes are killed, and their signals closed.
	Run func(p *Process)
	// Read, Edit and Search answer; nil: they are refused.
	Read   func(protocol.ReadRequest) (*protocol.ReadResponse, *protocol.Error)
	Edit   func(key string, r protocol.EditRequest) (*protocol.EditResponse, *protocol.Error)
	Search func(protocol.SearchRequest) (*protocol.SearchResponse, *protocol.Error)
	// Before is asked before each request is served, and serves it itself if it returns true.
	Before func(w http.ResponseWriter, r *http.Request) bool

	handler http.Handler
	options client.Options

	mu        sync.Mutex
	processes []*Process
	files     map[string]string
	requests  []string
	running   sync.WaitGroup
}

// Start starts an agent, which is stopped with the test.
func Start(t testing.TB) *Agent {
	t.Helper()
	a := newAgent()
	server := httptest.NewServer(a.handler)
	a.options = OptionsOf(server.URL, Chat)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		a.stop()
	})
	return a
}

// StartInMemory starts an agent that is reached without a network, so that a test may run in a bubble of package
// synctest, where hours pass in a moment.
func StartInMemory(t testing.TB) *Agent {
	t.Helper()
	a := newAgent()
	a.options = OptionsOf("http://workspace.invalid:7080", Chat)
	a.options.Transport = inMemory{a.handler}
	t.Cleanup(a.stop)
	return a
}

func newAgent() *Agent {
	a := &Agent{files: map[string]string{}, Run: func(p *Process) { p.Exit(0) }}
	mux := a.routes()
	a.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.note(r)
		if a.Before != nil && a.Before(w, r) {
			return
		}
		if r.Header.Get("Authorization") != "Bearer "+Token || r.Header.Get(protocol.HeaderChat) != Chat {
			refuse(w, http.StatusUnauthorized, protocol.Unauthenticated, "the token proves nothing")
			return
		}
		mux.ServeHTTP(w, r)
	})
	return a
}

func (a *Agent) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/info", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, protocol.Info{OS: "linux", Directory: "/workspace", Shell: "/bin/sh"})
	})
	mux.HandleFunc("PUT /v1/processes/{key}", a.start)
	mux.HandleFunc("GET /v1/processes", a.list)
	mux.HandleFunc("GET /v1/processes/{id}", a.with(look))
	mux.HandleFunc("GET /v1/processes/{id}/output", a.with(output))
	mux.HandleFunc("POST /v1/processes/{id}/signal", a.with(signal))
	mux.HandleFunc("PUT /v1/files", a.write)
	mux.HandleFunc("GET /v1/files", a.content)
	mux.HandleFunc("POST /v1/read", func(w http.ResponseWriter, r *http.Request) { answer(w, r, a.Read) })
	mux.HandleFunc("POST /v1/search", func(w http.ResponseWriter, r *http.Request) { answer(w, r, a.Search) })
	mux.HandleFunc("POST /v1/edits", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(edits protocol.EditRequest) (*protocol.EditResponse, *protocol.Error) {
			return a.Edit(r.Header.Get(protocol.HeaderCall), edits)
		})
	})
	return mux
}

// stop kills all processes.
func (a *Agent) stop() {
	for _, p := range a.Processes() {
		p.Kill("SIGKILL")
		close(p.signals)
	}
	a.running.Wait()
}

// Options are those of a client of the agent, which gives up soon.
func (a *Agent) Options() client.Options { return a.options }

// OptionsOf are those of a client of what listens at the URL.
func OptionsOf(base, chat string) client.Options {
	where, _ := url.Parse(base)
	host, port, _ := net.SplitHostPort(where.Host)
	number, _ := strconv.Atoi(port)
	return client.Options{
		Address: host, Port: number, Chat: chat,
		Token:  func(context.Context) (string, error) { return Token, nil },
		Pauses: []time.Duration{time.Millisecond, time.Millisecond},
	}
}

// Client is a client of the agent.
func (a *Agent) Client() *client.Client { return client.New(a.Options()) }

// Processes that were started, in their order.
func (a *Agent) Processes() []*Process {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]*Process(nil), a.processes...)
}

// Requests are the methods and URLs of those that came.
func (a *Agent) Requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.requests...)
}

// File is the content of a file that was written.
func (a *Agent) File(name string) (content string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	content, ok = a.files[name]
	return content, ok
}

func (a *Agent) note(r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r.Method+" "+r.URL.String())
}

func (a *Agent) start(w http.ResponseWriter, r *http.Request) {
	var asked protocol.StartRequest
	if !decode(w, r, &asked) {
		return
	}
	reply(w, a.begin(r.PathValue("key"), asked).Describe())
}

// Begin starts a command as a request would.
func (a *Agent) Begin(key, command string) *Process {
	return a.begin(key, protocol.StartRequest{Command: command})
}

func (a *Agent) begin(key string, asked protocol.StartRequest) *Process {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.processes {
		if p.about.Key == key {
			return p
		}
	}
	p := newProcess("p"+strconv.Itoa(len(a.processes)+1), key, asked)
	a.processes = append(a.processes, p)
	a.running.Go(func() { a.Run(p) })
	return p
}

func (a *Agent) list(w http.ResponseWriter, _ *http.Request) {
	list := protocol.ProcessList{Processes: []protocol.Process{}}
	for _, p := range a.Processes() {
		list.Processes = append([]protocol.Process{p.Describe()}, list.Processes...)
	}
	reply(w, list)
}

// with finds the process that a request is about.
func (a *Agent) with(serve func(*Process, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, p := range a.Processes() {
			if p.about.ID == r.PathValue("id") {
				serve(p, w, r)
				return
			}
		}
		refuse(w, http.StatusNotFound, protocol.NotFound, "There is no process "+r.PathValue("id")+".")
	}
}

func (a *Agent) write(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	name := r.URL.Query().Get("path")
	a.mu.Lock()
	defer a.mu.Unlock()
	_, there := a.files[name]
	a.files[name] = string(content)
	reply(w, protocol.FileInfo{Path: name, Size: int64(len(content)), Created: !there})
}

func (a *Agent) content(w http.ResponseWriter, r *http.Request) {
	content, ok := a.File(r.URL.Query().Get("path"))
	if !ok {
		refuse(w, http.StatusNotFound, protocol.NotFound, "there is no such file")
		return
	}
	_, _ = io.WriteString(w, content)
}

func answer[Q, A any](w http.ResponseWriter, r *http.Request, serve func(Q) (*A, *protocol.Error)) {
	var asked Q
	if !decode(w, r, &asked) {
		return
	}
	got, refused := serve(asked)
	if refused != nil {
		refuse(w, http.StatusUnprocessableEntity, refused.Code, refused.Message)
		return
	}
	reply(w, got)
}

func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, protocol.BadRequest, err.Error())
		return false
	}
	return true
}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // Who has gone away does not read it.
}

func refuse(w http.ResponseWriter, status int, code protocol.ErrorCode, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	reply(w, protocol.Error{Code: code, Message: message})
}

// seconds is a parameter of a wait.
func seconds(r *http.Request) time.Duration {
	n, _ := strconv.Atoi(strings.TrimSpace(r.URL.Query().Get("wait")))
	return time.Duration(n) * time.Second
}
