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
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"parley.dev/parley/hack/localcluster/internal/egress"
	"parley.dev/parley/hack/localcluster/internal/layout"
	"parley.dev/parley/hack/localcluster/internal/process"
)

// EgressCommand is the subcommand by which Egress starts the program that serves.
const EgressCommand = "serve-egress"

// way is a way out that is being served.
type way struct {
	Process process.Ref `json:"process"`
	URL     string      `json:"url"`
}

// Egress opens a way out of the cluster to an origin, such as https://api.openai.com, and returns its URL within the
// cluster. It stays open as long as the cluster is up; asked again, also at the same time, it is the same.
func (m Manager) Egress(ctx context.Context, origin string) (string, error) {
	target, err := parseOrigin(origin)
	if err != nil {
		return "", err
	}
	if _, err := m.running(); err != nil {
		return "", err
	}
	if os.Geteuid() != 0 {
		return "", ErrNeedsRoot
	}
	lock, err := m.lock()
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if _, err := m.running(); err != nil { // a down may have held the lock until now
		return "", err
	}
	return m.openWay(ctx, target.String())
}

// openWay returns the URL of the way out that is open, or opens and records one. The caller holds the lock.
func (m Manager) openWay(ctx context.Context, origin string) (string, error) {
	file := m.wayFile(origin)
	var w way
	if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &w) == nil && w.Process.Alive() {
		return w.URL, nil
	}
	w, err := m.startEgress(ctx, origin)
	if err != nil {
		return "", err
	}
	if err := m.record(file, w); err != nil {
		// What is not written down would not be found by down.
		return "", errors.Join(err, w.Process.Kill(context.WithoutCancel(ctx)))
	}
	return w.URL, nil
}

func (m Manager) record(file string, w way) error {
	b, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("encoding the way out: %w", err)
	}
	if err := errors.Join(os.MkdirAll(m.Path("egress"), 0o755), os.WriteFile(file, b, 0o644)); err != nil {
		return fmt.Errorf("recording the way out: %w", err)
	}
	return nil
}

// closeWays ends every recorded way out and waits until it is gone: it lives outside the cluster's namespaces, and
// keeps the network namespace in being. One whose record cannot be read ends by itself soon after the cluster.
func (m Manager) closeWays(ctx context.Context) error {
	files, err := filepath.Glob(m.Path("egress", "*.json"))
	if err != nil {
		return fmt.Errorf("looking for ways out: %w", err)
	}
	for _, file := range files {
		var w way
		b, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(b, &w) != nil {
			continue
		}
		if err := w.Process.Kill(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (m Manager) wayFile(origin string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(origin))
	return m.Path("egress", fmt.Sprintf("%x.json", h.Sum64()))
}

// startEgress starts the program that serves and waits until it says where. This program writes to none of the files
// that it closes here, so that their closing has nothing to report.
func (m Manager) startEgress(ctx context.Context, origin string) (way, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return way{}, fmt.Errorf("making a pipe: %w", err)
	}
	defer func() { _ = read.Close() }()
	log, err := os.Create(m.Log("egress"))
	if err != nil {
		return way{}, errors.Join(fmt.Errorf("creating a log: %w", err), write.Close())
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/proc/self/exe", "-dir="+m.Dir, "-bin="+m.Bin, EgressCommand,
		origin)
	cmd.Stdout, cmd.Stderr = write, log
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = write.Close() // so that reading ends with the program
	if err != nil {
		return way{}, fmt.Errorf("starting the way out: %w", err)
	}
	ref, err := process.Of(cmd.Process.Pid) // before it is waited for, so that the number is its own
	go func() { _ = cmd.Wait() }()          // only collects it, should it end while this program still runs
	if err != nil {
		return way{}, fmt.Errorf("the way out ended at once, see %s: %w", m.Log("egress"), err)
	}
	defer context.AfterFunc(ctx, func() { _ = read.Close() })()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		return way{}, errors.Join(m.whyClosed(ctx), ref.Kill(context.WithoutCancel(ctx)))
	}
	return way{Process: ref, URL: strings.TrimSpace(line)}, nil
}

// whyClosed is why a way out did not open: the caller went away, or what the program that serves said last.
func (m Manager) whyClosed(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("opening the way out: %w", context.Cause(ctx))
	}
	b, err := os.ReadFile(m.Log("egress"))
	if err != nil {
		return fmt.Errorf("the way out did not open, and its log cannot be read: %w", err)
	}
	return fmt.Errorf("the way out did not open: %s", strings.TrimPrefix(strings.TrimSpace(string(b)), "cluster: "))
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
	listener, err := egress.ListenIn(ctx, s.Init.PID, net.JoinHostPort(layout.PodGateway, "0"))
	if err != nil {
		return err
	}
	go func() {
		defer cancel()
		for tick := time.NewTicker(500 * time.Millisecond); s.Init.Alive() && ctx.Err() == nil; <-tick.C {
		}
	}()
	server := &http.Server{
		Handler: egress.Handler(target), ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: log.New(io.Discard, "", 0), // it would speak of requests
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Printf("http://%s\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the way out to %s: %w", origin, err)
	}
	return nil
}

// parseOrigin accepts a scheme and a host, and nothing that a request could not say better by itself.
func parseOrigin(origin string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(origin, "/"))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" ||
		*u != (url.URL{Scheme: u.Scheme, Host: u.Host}) {
		return nil, fmt.Errorf("%q is not an origin such as https://api.openai.com", origin)
	}
	return u, nil
}
