// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	parleyrelay "parley.dev/parley/internal/stream/relay"
	"parley.dev/parley/test/kit/check"
)

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
