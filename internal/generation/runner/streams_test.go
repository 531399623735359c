// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"charm.land/fantasy"
	"k8s.io/apimachinery/pkg/util/rand"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/stream/publish"
	parleyrelay "parley.dev/parley/internal/stream/relay"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/modelserver"
)

const (
	// streams at once, each of partsPerSecond, of partsPerStream parts.
	streams        = 200
	partsPerSecond = 100
	partsPerStream = 500
	// rounds of each kind, in turn; the figures are medians. On a machine with other work one round can be off by a tenth.
	rounds = 5
)

// generatorFigures are what the benchmark measures, with their names in bin/bench.json.
type generatorFigures struct {
	Streams     int     `json:"streams"`
	PartsPerSec float64 `json:"parts_per_s"`
	// CPU and ModelCPU are microseconds; AddedShare is the median of what the pod added to the model's in each round.
	CPU        float64 `json:"cpu_us_per_part"`
	ModelCPU   float64 `json:"model_cpu_us_per_part"`
	AddedShare float64 `json:"added_share"`
	// Flatness is what a part costs in a reply of 100000 parts, divided by what it costs in one of 1000.
	Flatness float64 `json:"long_reply_share"`
}

// BenchmarkStreams measures what this process spends per part while it streams 200 replies at 100 parts a second each:
// with the model alone, whose parts are dropped, and with everything that a generation pod does. Model and relay are
// another process. Every b.N is a whole measurement; BENCH_OUT names a file for the figures as JSON.
func BenchmarkStreams(b *testing.B) {
	var f generatorFigures
	for b.Loop() {
		f = measureStreams(b)
		f.Flatness = measureLength(b)
	}
	for unit, v := range map[string]float64{
		"cpu-us/part": f.CPU, "model-cpu-us/part": f.ModelCPU, "added-share": f.AddedShare, "parts/s": f.PartsPerSec,
		"100k/1k-share": f.Flatness,
	} {
		b.ReportMetric(v, unit)
	}
	if out := os.Getenv("BENCH_OUT"); out != "" {
		raw, err := json.MarshalIndent(f, "  ", "  ")
		check.OK(b, err)
		check.OK(b, os.WriteFile(out, raw, 0o600))
	}
}

func measureStreams(b *testing.B) generatorFigures {
	var bare, ours, rates, shares []float64
	for round := range rounds {
		cost, _ := bareStreams(b)
		bare = append(bare, cost)
		cost, rate := podStreams(b)
		ours, rates, shares = append(ours, cost), append(rates, rate), append(shares, cost/bare[round]-1)
		b.Logf("fantasy %.1f us of CPU a part, a generation pod %.1f; %.0f parts/s", bare[round], cost, rate)
	}
	return generatorFigures{Streams: streams, PartsPerSec: median(rates), CPU: median(ours), ModelCPU: median(bare),
		AddedShare: median(shares)}
}

func median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// gauge counts parts, and takes the CPU time at a tenth and at nine tenths of them:
// all streams are under way in between.
type gauge struct {
	parts    atomic.Int64
	from, to mark
}

type mark struct {
	cpu  time.Duration
	time time.Time
}

func now() mark {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return mark{time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), time.Now()}
}

const allParts = streams * partsPerStream

func (g *gauge) count() {
	switch g.parts.Add(1) {
	case allParts / 10:
		g.from = now()
	case allParts / 10 * 9:
		g.to = now()
	}
}

// result is the CPU time per part in microseconds, and the parts per second.
func (g *gauge) result(b *testing.B) (cost, rate float64) {
	const counted = allParts/10*9 - allParts/10
	if n := g.parts.Load(); n < allParts/10*9 {
		b.Fatalf("only %d parts came", n)
	}
	return (g.to.cpu - g.from.cpu).Seconds() * 1e6 / counted, counted / g.to.time.Sub(g.from.time).Seconds()
}

// bareStreams reads the streams of the model and drops what comes.
func bareStreams(b *testing.B) (cost, rate float64) {
	p := startPeer(b)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	config := modelConfig("", "default", p.url)
	model, err := provider.New(&config.Spec, modeltest.Key, &http.Client{Transport: transport})
	check.OK(b, err)
	var g gauge
	var running sync.WaitGroup
	for range streams {
		running.Go(func() {
			stream, err := model.Stream(b.Context(), fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage("hello")}})
			if err != nil {
				b.Error(err)
				return
			}
			for part := range stream {
				if part.Type == fantasy.StreamPartTypeTextDelta {
					g.count()
				}
			}
		})
	}
	running.Wait()
	return g.result(b)
}

// podStreams lets a generation pod answer as many chats.
func podStreams(b *testing.B) (cost, rate float64) {
	peer, g := startPeer(b), &gauge{}
	pod := startPod(b, modelserver.Script{}, func(_ *pod, o *runner.Options) {
		o.Relay = countingRelay{publish.New(peer.socket, rand.String(8), time.Now), g}
	})
	defer pod.stop()
	create(b, modelConfig(pod.ns, "peer", peer.url))
	conversations := make([]*conversation, streams)
	var asking sync.WaitGroup
	for i := range conversations {
		asking.Go(func() {
			c := pod.newChat(fmt.Sprint("s-", i), nil)
			c.config = "peer"
			c.ask(fmt.Sprint("s-", i, "-u"), "hello")
			conversations[i] = c
		})
	}
	asking.Wait()
	for _, c := range conversations {
		if m := c.result(); m.Spec.Generation.Outcome != v1beta1.OutcomeCompleted {
			b.Fatalf("chat %s: got %+v", c.chat.Name, m.Spec.Generation)
		}
	}
	return g.result(b)
}

// countingRelay is the pod's client of its relay, with a gauge.
type countingRelay struct {
	*publish.Client
	*gauge
}

type countingEpisode struct {
	runner.Episode
	*gauge
}

func (r countingRelay) Open(ctx context.Context, ep fence.Fence) (runner.Episode, error) {
	e, err := r.Client.Open(ctx, ep)
	return countingEpisode{e, r.gauge}, err
}

func (e countingEpisode) Publish(role string, p parts.Part) {
	e.Episode.Publish(role, p)
	e.count()
}

// measureLength is what a part costs in a long reply, divided by what it costs in a short one:
// from the stream to the relay.
func measureLength(b *testing.B) float64 {
	p := startPeer(b)
	client := publish.New(p.socket, rand.String(8), time.Now)
	defer client.CloseIdleConnections()
	cost := map[int]float64{}
	for _, n := range []int{1000, 10_000, 100_000} {
		var costs []float64
		for round := range rounds {
			replies := 200_000 / n // As many parts of each length.
			began := now()
			for i := range replies {
				collectAndPublish(b, client, fence.Fence{ChatUID: fmt.Sprintf("r%d-%d", n, i), Attempt: int32(round + 1)}, n)
			}
			costs = append(costs, (now().cpu-began.cpu).Seconds()*1e6/float64(replies*n))
		}
		cost[n] = median(costs)
		b.Logf("a reply of %d parts: %.2f us of CPU a part", n, cost[n])
	}
	return cost[100_000] / cost[1000]
}

func collectAndPublish(b *testing.B, client *publish.Client, name fence.Fence, n int) {
	episode, err := client.Open(b.Context(), name)
	check.OK(b, err)
	reply := collect.NewAccumulator(v1beta1.ProviderOpenAICompatible, 1, nil)
	for range n {
		if part, ok := reply.Add(&fantasy.StreamPart{Type: fantasy.StreamPartTypeTextDelta, ID: "0", Delta: "word "}); ok {
			episode.Publish("Assistant", part)
		}
	}
	if s := reply.Finish(); len(s.Parts) != 1 || len(*s.Parts[0].Text) != 5*n {
		b.Fatal("the reply is not whole")
	}
	check.OK(b, episode.Close(b.Context()))
}

// peerSocket is set for the process that plays model and relay in benchmarks: it is the path of the relay's socket.
const peerSocket = "PARLEY_BENCH_PEER"

// peer is that process.
type peer struct{ url, socket string }

// startPeer runs this program once more, to the end of the benchmark.
func startPeer(b *testing.B) peer {
	b.Helper()
	program, err := os.Executable()
	check.OK(b, err)
	socket := filepath.Join(b.TempDir(), "relay.sock")
	command := exec.CommandContext(b.Context(), program)
	command.Env = append(os.Environ(), peerSocket+"="+socket)
	in, err := command.StdinPipe() // Its end ends the process.
	check.OK(b, err)
	out, err := command.StdoutPipe()
	check.OK(b, err)
	check.OK(b, command.Start())
	b.Cleanup(func() {
		_ = in.Close()
		_ = command.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("the peer does not start: %v", err)
	}
	return peer{url: "http://" + strings.TrimSpace(address), socket: socket}
}

// runPeer says where it serves, and serves until its input ends.
func runPeer(socket string, in io.Reader, out io.Writer) error {
	store, err := parleyrelay.NewStore(parleyrelay.Options{Now: time.Now})
	if err != nil {
		return err
	}
	local, err := parleyrelay.ListenLocal(socket)
	if err != nil {
		return err
	}
	public, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	for listener, handler := range map[net.Listener]http.Handler{local: parleyrelay.LocalHandler(store, nil),
		public: &chorus{begin: make(chan struct{})}} {
		server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(listener) }()
		defer server.Close()
	}
	if _, err := fmt.Fprintln(out, public.Addr()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// chorus is a model whose replies begin together, once all have been asked for.
type chorus struct {
	mu    sync.Mutex
	asked int
	begin chan struct{}
}

const chunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"scripted","service_tier":"default",` +
	`"system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":%q},"logprobs":null,"finish_reason":%s}],"usage":null}` + "\n\n"

// ServeHTTP implements http.Handler.
func (c *chorus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	c.mu.Lock()
	if c.asked++; c.asked == streams {
		close(c.begin)
	}
	c.mu.Unlock()
	select {
	case <-c.begin:
	case <-r.Context().Done():
		return
	}
	ticker := time.NewTicker(time.Second / partsPerSecond)
	defer ticker.Stop()
	flush := http.NewResponseController(w)
	part := fmt.Appendf(nil, chunk, "word ", "null")
	for range partsPerStream {
		<-ticker.C
		if _, err := w.Write(part); err != nil || flush.Flush() != nil {
			return
		}
	}
	_, _ = fmt.Fprintf(w, chunk+"data: [DONE]\n\n", "", `"stop"`)
}
