// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
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
	create(t, modelConfig(p.ns, "captioned", p.url, func(s *v1beta1.ChatModelConfigSpec) {
		s.Titles, s.TurnSummaries = &v1beta1.CaptionSettings{}, &v1beta1.CaptionSettings{}
	}))
	p.launch(change)
	return p
}

func modelConfig(ns, name, url string, change ...func(*v1beta1.ChatModelConfigSpec)) *v1beta1.ChatModelConfig {
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

// fault answers a request in place of the API server; nil: the request goes through.
type fault func(r *http.Request, through http.RoundTripper) (*http.Response, error)

// wire is the way between a pod and the API server: it counts requests and can make them fail.
type wire struct {
	mu    sync.Mutex
	next  http.RoundTripper
	count map[string]int
	// fault is asked before each request. nil: the request goes through.
	fault fault
}

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	w.next, w.count = next, map[string]int{}
	return w
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.count[kindOf(r)]++
	fault := w.fault
	w.mu.Unlock()
	if fault != nil {
		if response, err := fault(r, w.next); response != nil || err != nil {
			return response, err
		}
	}
	return w.next.RoundTrip(r)
}

// kindOf is the verb and the resource, such as "get chatmessages".
func kindOf(r *http.Request) string {
	_, path, _ := strings.Cut(r.URL.Path, "/namespaces/")
	_, path, _ = strings.Cut(path, "/")
	resource, name, _ := strings.Cut(path, "/")
	verb := "list"
	switch {
	case r.Method == http.MethodPost:
		verb = "create"
	case r.URL.Query().Get("watch") != "":
		verb = "watch"
	case name != "":
		verb = "get"
	}
	return verb + " " + resource
}

// requests is how often something was asked since the last call with the same argument.
func (w *wire) requests(kind string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.count[kind]
	delete(w.count, kind)
	return n
}

// onCreate makes the first creates of messages fail, one by each fault.
func (w *wire) onCreate(faults ...fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := make(chan fault, len(faults))
	for _, fault := range faults {
		next <- fault
	}
	w.fault = func(r *http.Request, through http.RoundTripper) (*http.Response, error) {
		if kindOf(r) != "create chatmessages" {
			return nil, nil
		}
		select {
		case fault := <-next:
			return fault(r, through)
		default:
			return nil, nil
		}
	}
}

// answers is a fault: the API server answers with a status.
func answers(code int, reason metav1.StatusReason) fault {
	return refuses(code, reason, "quoting the reply: Paris")
}

// refuses is a fault: the API server answers with an error and its message.
func refuses(code int, reason metav1.StatusReason, message string) fault {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		body, err := json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: int32(code), Reason: reason, Message: message,
		})
		return &http.Response{
			StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(bytes.NewReader(body)),
		}, err
	}
}

var errCut = errors.New("the connection was cut")

// cutBefore is a fault: the request never arrives.
func cutBefore(*http.Request, http.RoundTripper) (*http.Response, error) { return nil, errCut }

// cutAfter is a fault: the request is carried out, and nobody hears of it.
func cutAfter(r *http.Request, through http.RoundTripper) (*http.Response, error) {
	response, err := through.RoundTrip(r)
	if err == nil {
		_ = response.Body.Close()
	}
	return nil, errCut
}
