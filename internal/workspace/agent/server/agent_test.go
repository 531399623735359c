// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"parley.dev/parley/internal/kube/satoken"
	"parley.dev/parley/internal/workspace/agent/review"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/tokens"
)

const (
	generator = "system:serviceaccount:shop:parley-generation"
	gateway   = "system:serviceaccount:parley-system:parley-gateway"
	chat      = "0d1c0000-0000-4000-8000-000000000001"
	otherChat = "0d1c0000-0000-4000-8000-000000000002"
)

var audience = protocol.Audience("shop", "0d1c-pod")

// clock is set by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// logs is a log that can be read while it is written.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// agent is a workspace's agent, served over a loopback connection.
type agent struct {
	t       *testing.T
	dir     string // of the files
	state   string
	keys    string // the directory in which the kubelet mounts the ConfigMap
	cluster *tokens.Cluster
	clock   *clock
	commands
	log     logs
	change  func(*Server)
	run     review.Run
	token   string
	chat    string
	address string
	stop    func()
}

// newAgent makes an agent that is bound to the chat, and runs.
func newAgent(t *testing.T, change ...func(*Server)) *agent {
	t.Helper()
	a := unboundAgent(t, change...)
	a.expect(a.put("/v1/binding", protocol.Binding{Chat: chat}), http.StatusOK, "")
	return a
}

func unboundAgent(t *testing.T, change ...func(*Server)) *agent {
	t.Helper()
	top := t.TempDir()
	a := &agent{t: t, dir: filepath.Join(top, "workspace"), state: filepath.Join(top, "state"),
		keys:    filepath.Join(top, "keys"),
		cluster: tokens.New(t), clock: &clock{now: time.Unix(1_800_000_000, 0)}, chat: chat,
		run: func(context.Context, *protocol.StartRequest, string, func(io.Reader) error) error {
			return &protocol.Error{Code: protocol.CannotStart, Message: "there is no git"}
		}}
	a.change = func(s *Server) {
		for _, change := range change {
			change(s)
		}
	}
	check.OK(t, os.Mkdir(a.dir, 0o755))
	a.publish("first", a.cluster.KeySet())
	a.token = a.sign(func(*jwt.Claims) {})
	a.start()
	t.Cleanup(func() {
		a.stop()
		for _, secret := range []string{a.token, "secret content"} {
			if strings.Contains(a.log.String(), secret) {
				t.Errorf("the log holds %q: %s", secret, a.log.String())
			}
		}
	})
	return a
}

// publish lays keys out as a kubelet mounts a ConfigMap: the whole directory is replaced by a link that is renamed.
func (a *agent) publish(version string, set []byte) {
	a.t.Helper()
	dir := filepath.Join(a.keys, "..data-"+version)
	check.OK(a.t, os.MkdirAll(dir, 0o755))
	check.OK(a.t, os.WriteFile(filepath.Join(dir, "jwks.json"), set, 0o644))
	check.OK(a.t, os.Symlink("..data-"+version, filepath.Join(a.keys, "..data_tmp")))
	check.OK(a.t, os.Rename(filepath.Join(a.keys, "..data_tmp"), filepath.Join(a.keys, "..data")))
	if err := os.Symlink("..data/jwks.json", filepath.Join(a.keys, "jwks.json")); err != nil && !os.IsExist(err) {
		a.t.Fatal(err)
	}
}

func (a *agent) sign(change func(*jwt.Claims)) string {
	claims := tokens.Claims(generator, audience, a.clock.Now())
	change(&claims)
	return a.cluster.Sign(tokens.FirstKey, claims)
}

// start runs the agent, again after stop.
func (a *agent) start() {
	a.t.Helper()
	log := slog.New(slog.NewTextHandler(&a.log, nil))
	verifier := func(subject string) *satoken.Verifier {
		return &satoken.Verifier{Issuer: tokens.Issuer, Audience: audience, Subjects: []string{subject},
			Keys: &KeyFile{Path: filepath.Join(a.keys, "jwks.json"), Now: a.clock.Now, Log: log}, Now: a.clock.Now}
	}
	server, err := New(Options{Directory: a.dir, State: a.state, Processes: &a.commands, Log: log,
		Authorizer: verifier(generator), Viewers: verifier(gateway), Run: a.run})
	check.OK(a.t, err)
	a.change(server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(a.t, err)
	a.address = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Run(ctx, listener); err != nil {
			a.t.Error(err)
		}
	})
	a.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
}

func (a *agent) restart() {
	a.t.Helper()
	a.stop()
	a.start()
}

// reply is an answer that has arrived.
type reply struct {
	request string
	status  int
	header  http.Header
	body    string
	err     error
}

// do sends a request as the chat's generation pod does.
func (a *agent) do(method, path string, body io.Reader, change ...func(*http.Request)) reply {
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.address+path, body)
	if err != nil {
		return reply{err: err}
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set(protocol.HeaderChat, a.chat)
	for _, c := range change {
		c(r)
	}
	answer, err := client.Do(r)
	if err != nil {
		return reply{err: err}
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return reply{request: method + " " + path, status: answer.StatusCode, header: answer.Header, body: string(content),
		err: err}
}

// client follows nothing: an agent that sends it elsewhere is wrong.
var client = &http.Client{CheckRedirect: func(*http.Request,
	[]*http.Request) error {
	return http.ErrUseLastResponse
}}

func (a *agent) get(path string, change ...func(*http.Request)) reply {
	return a.do(http.MethodGet, path, nil, change...)
}

func (a *agent) put(path string, value any) reply  { return a.json(http.MethodPut, path, value) }
func (a *agent) post(path string, value any) reply { return a.json(http.MethodPost, path, value) }

func (a *agent) json(method, path string, value any) reply {
	body, err := json.Marshal(value)
	if err != nil {
		return reply{err: err}
	}
	return a.do(method, path, bytes.NewReader(body))
}

// expect checks an answer for its status, and a refusal for its code.
func (a *agent) expect(got reply, status int, code protocol.ErrorCode) {
	a.t.Helper()
	if err := got.is(status, code); err != nil {
		a.t.Error(err)
	}
}

func (r reply) is(status int, code protocol.ErrorCode) error {
	if r.err != nil || r.status != status {
		return fmt.Errorf("%s: got %d %.300q: %w; want %d", r.request, r.status, r.body, r.err, status)
	}
	if code == "" {
		return nil
	}
	var refused protocol.Error
	if err := json.Unmarshal([]byte(r.body), &refused); err != nil || refused.Code != code || refused.Message == "" {
		return fmt.Errorf("%s: got %.300q: %w; want the code %s", r.request, r.body, err, code)
	}
	return nil
}

// decode decodes an answer.
func decodeReply[T any](t *testing.T, r reply) (value T) {
	t.Helper()
	check.OK(t, r.is(http.StatusOK, ""))
	check.OK(t, json.Unmarshal([]byte(r.body), &value))
	return value
}

// commands are Processes of which a test says what they do.
type commands struct {
	mu      sync.Mutex
	started []protocol.StartRequest
	// wait is what Wait and WaitOutput do; nil: they wait for the context.
	wait func(ctx context.Context)
	// start is what Start does besides.
	start  func(ctx context.Context)
	output func(from int64) (*Output, error)
}

var echo = protocol.Process{ID: "p1", Key: "chat-1-a", Command: "echo", State: protocol.Running, OutputBytes: 10}

func (c *commands) named(id string) (protocol.Process, error) {
	if id != echo.ID {
		return protocol.Process{}, refuse(protocol.NotFound, "There is no process %q.", id)
	}
	return echo, nil
}

func (c *commands) Start(ctx context.Context, key string, r *protocol.StartRequest) (protocol.Process, error) {
	c.mu.Lock()
	c.started = append(c.started, *r)
	start := c.start
	c.mu.Unlock()
	if start != nil {
		start(ctx)
	}
	p := echo
	p.Key, p.Command = key, r.Command
	return p, nil
}

func (c *commands) Speak(_ string, r *protocol.StartRequest) (Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = append(c.started, *r)
	return parrot{}, nil
}

// parrot is a session with a command that says what it hears.
type parrot struct{}

func (parrot) Process() protocol.Process { return echo }

func (parrot) Relay(ctx context.Context, client io.ReadWriteCloser) {
	defer context.AfterFunc(ctx, func() { client.Close() })()
	defer client.Close()
	_, _ = io.Copy(client, client)
}

func (c *commands) List() []protocol.Process { return []protocol.Process{echo} }

func (c *commands) Wait(ctx context.Context, id string) (protocol.Process, error) {
	if c.wait == nil {
		<-ctx.Done()
	} else {
		c.wait(ctx)
	}
	return c.named(id)
}

func (c *commands) WaitOutput(ctx context.Context, id string, _ int64) (protocol.Process, error) {
	return c.Wait(ctx, id)
}

func (c *commands) Output(id string, from int64) (*Output, error) {
	if _, err := c.named(id); err != nil {
		return nil, err
	}
	return c.output(from)
}

func (c *commands) Signal(id string, s protocol.Signal) (protocol.Process, error) {
	p, err := c.named(id)
	p.Note = string(s)
	return p, err
}

func (c *commands) Info() (string, int) { return "/bin/sh", 3 }
