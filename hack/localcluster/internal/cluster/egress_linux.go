// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"parley.dev/parley/hack/localcluster/internal/egress"
	"parley.dev/parley/hack/localcluster/internal/process"
)

// EgressCommand is the subcommand by which Egress starts the program that serves.
const EgressCommand = "serve-egress"

// egressAddress is that of the bridge to which every pod is connected, with a free port.
const egressAddress = "10.244.0.1:0"

// way is a way out that is being served.
type way struct {
	Process process.Ref `json:"process"`
	URL     string      `json:"url"`
}

// Egress opens a way out of the cluster to an origin, such as https://api.openai.com, and returns its URL within the
// cluster. It stays open as long as the cluster is up; asked again, it is the same.
func (m Manager) Egress(ctx context.Context, origin string) (string, error) {
	if _, err := parseOrigin(origin); err != nil {
		return "", err
	}
	if _, err := m.running(); err != nil {
		return "", err
	}
	file := m.wayFile(origin)
	var w way
	if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &w) == nil && w.Process.Alive() {
		return w.URL, nil
	}
	w, err := m.startEgress(ctx, origin)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(w)
	if err != nil {
		return "", fmt.Errorf("encoding the way out: %w", err)
	}
	if err := errors.Join(os.MkdirAll(m.Path("egress"), 0o755), os.WriteFile(file, b, 0o644)); err != nil {
		return "", fmt.Errorf("recording the way out: %w", err)
	}
	return w.URL, nil
}

func (m Manager) wayFile(origin string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(origin))
	return m.Path("egress", fmt.Sprintf("%x.json", h.Sum64()))
}

// startEgress starts the program that serves and waits until it says where.
func (m Manager) startEgress(ctx context.Context, origin string) (way, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return way{}, fmt.Errorf("making a pipe: %w", err)
	}
	defer read.Close()
	cmd := exec.Command("/proc/self/exe", "-dir="+m.Dir, "-bin="+m.Bin, EgressCommand, origin)
	cmd.Stdout = write
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	write.Close()
	if err != nil {
		return way{}, fmt.Errorf("starting the way out: %w", err)
	}
	go func() { _ = cmd.Wait() }() // only collects it, should it end while this program still runs
	defer context.AfterFunc(ctx, func() { read.Close() })()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		return way{}, fmt.Errorf("the way out did not open; %s serve-egress %s says why", os.Args[0], origin)
	}
	ref, err := process.Of(cmd.Process.Pid)
	if err != nil {
		return way{}, fmt.Errorf("the way out ended at once: %w", err)
	}
	return way{Process: ref, URL: strings.TrimSpace(line)}, nil
}

// ServeEgress serves a way out until the cluster is down. It prints its URL within the cluster.
func (m Manager) ServeEgress(ctx context.Context, origin string) error {
	target, err := parseOrigin(origin)
	if err != nil {
		return err
	}
	s, err := m.running()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listener, err := egress.ListenIn(ctx, s.Init.PID, egressAddress)
	if err != nil {
		return err
	}
	go func() {
		defer cancel()
		for tick := time.NewTicker(500 * time.Millisecond); s.Init.Alive() && ctx.Err() == nil; <-tick.C {
		}
	}()
	server := &http.Server{Handler: egress.Handler(target), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	fmt.Printf("http://10.244.0.1:%d\n", listener.Addr().(*net.TCPAddr).Port)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the way out to %s: %w", origin, err)
	}
	return nil
}

func parseOrigin(origin string) (*url.URL, error) {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Path != "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%q is not an origin such as https://api.openai.com", origin)
	}
	return u, nil
}
