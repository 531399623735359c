// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/builtin"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/kit/testcluster"
	"parley.dev/parley/test/kit/waiting"
	"parley.dev/parley/test/modelserver"
)

var cluster *testcluster.Cluster

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	if socket := os.Getenv(peerSocket); socket != "" {
		if err := runPeer(socket, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	return testcluster.RunShared(m, &cluster)
}

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// pod is a generation pod in a namespace of its own, with a model server of its own. Everything but the pod is real.
type pod struct {
	t      testing.TB
	ns     string
	name   string
	url    string
	models *modelserver.Server
	relay  *relay
	wire   *wire
	log    *log
	runner *runner.Runner
	// drain ends the taking of attempts; stop ends everything and waits for the end.
	drain, stop func()
	ended       chan struct{}
}

// newPod is a pod that has not been started, in a namespace of its own, and the URL of its model.
func newPod(t testing.TB, script modelserver.Script) (p *pod, url string) {
	t.Helper()
	p = &pod{t: t, ns: cluster.Namespace(t, "r"), name: "generation-0", relay: &relay{}, log: &log{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log: %s", p.log)
		}
	})
	p.models, url = modeltest.Start(t, script)
	return p, url
}

// startPod starts a pod whose model follows the script. change may change its options.
func startPod(t testing.TB, script modelserver.Script, change func(*pod, *runner.Options)) *pod {
	t.Helper()
	p, url := newPod(t, script)
	p.url = url + "/v1"
	create(t, modelConfig(p.ns, "default", p.url))
	create(t, modelConfig(p.ns, "captioned", p.url, func(s *v1alpha1.ChatModelConfigSpec) {
		s.Titles, s.TurnSummaries = &v1alpha1.CaptionSettings{}, &v1alpha1.CaptionSettings{}
	}))
	p.launch(change)
	return p
}

func modelConfig(ns, name, url string, change ...func(*v1alpha1.ChatModelConfigSpec)) *v1alpha1.ChatModelConfig {
	return chattest.In(ns, modeltest.Config(name, url, change...))
}

// launch begins a life of the pod's generator.
func (p *pod) launch(change func(*pod, *runner.Options)) {
	p.t.Helper()
	p.wire = &wire{}
	cfg := rest.CopyConfig(cluster.Config)
	cfg.WrapTransport = p.wire.wrap
	c, err := apiclient.New(cfg, "parley-generator-test")
	check.OK(p.t, err)
	transport := &http.Transport{}
	o := runner.Options{
		Namespace: p.ns, Pod: p.name, Client: c, Relay: p.relay, HTTP: &http.Client{Transport: transport},
		Keys:  modeltest.Keys,
		Tools: tools.NewRegistry(builtin.CurrentTime{Now: func() time.Time { return time.Unix(0, 0) }}),
		Log:   slog.New(slog.NewJSONHandler(p.log, nil)), Now: time.Now,
	}
	if change != nil {
		change(p, &o)
	}
	p.runner = runner.New(o)
	drain, stopDrain := context.WithCancel(context.Background())
	ctx, stop := context.WithCancel(context.Background())
	p.ended, p.drain = make(chan struct{}), stopDrain
	go func() {
		defer close(p.ended)
		if err := p.runner.Run(ctx, drain); err != nil {
			p.t.Errorf("the runner ended with %v", err)
		}
	}()
	p.stop = sync.OnceFunc(func() {
		stopDrain()
		stop()
		<-p.ended
		transport.CloseIdleConnections()
	})
	p.t.Cleanup(p.stop)
	p.eventually("the pod is ready", p.runner.Ready)
}

func create(t testing.TB, o client.Object) {
	t.Helper()
	cluster.Create(t, o)
}

// eventually waits until the condition holds.
func (p *pod) eventually(what string, condition func() bool) {
	p.t.Helper()
	waiting.Until(p.t, patience, what, condition)
}

// log keeps what was logged.
type log struct {
	mu   sync.Mutex
	text []byte
}

func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, line...)
	return len(line), nil
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// relay keeps what was published.
type relay struct {
	mu       sync.Mutex
	episodes map[fence.Fence]*episode
	fail     error
}

type episode struct {
	*relay
	frames []parts.Frame
	closed bool
}

func (r *relay) Open(_ context.Context, name fence.Fence) (runner.Episode, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return nil, r.fail
	}
	if r.episodes == nil {
		r.episodes = map[fence.Fence]*episode{}
	}
	e := &episode{relay: r}
	r.episodes[name] = e
	return e, nil
}

func (r *relay) SoFar(_ context.Context, name fence.Fence) ([]parts.Frame, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.episodes[name]; e != nil {
		return e.frames, nil
	}
	return nil, nil
}

func (e *episode) Publish(role string, p parts.Part) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.frames = append(e.frames, parts.Frame{Seq: int64(len(e.frames) + 1), Role: role, Part: p})
}

func (e *episode) Close(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return nil
}

// heard returns what was published of an attempt.
func (r *relay) heard(name fence.Fence) (text string, types []parts.Type) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.episodes[name]
	if e == nil {
		return "", nil
	}
	for _, f := range e.frames {
		types = append(types, f.Part.Type)
		text += f.Part.Text
	}
	return text, types
}

// isClosed reports whether an attempt was closed, which does not keep its result.
func (r *relay) isClosed(name fence.Fence) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.episodes[name] != nil && r.episodes[name].closed
}
