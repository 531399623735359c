// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package cluster starts, stops and looks at a cluster from outside.
//
// A cluster is one process (see package boot) and one directory. The process's number and start time, and the
// address of the API server, are in the directory's cluster.json from the moment the process exists; whatever
// was killed and when, the next up or down finds what is left and removes it.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"parley.dev/parley/hack/localcluster/internal/apiclient"
	"parley.dev/parley/hack/localcluster/internal/boot"
	"parley.dev/parley/hack/localcluster/internal/cgroup"
	"parley.dev/parley/hack/localcluster/internal/component"
	"parley.dev/parley/hack/localcluster/internal/layout"
	"parley.dev/parley/hack/localcluster/internal/process"
)

// ErrNotUp is returned by what needs a running cluster.
var ErrNotUp = errors.New("the cluster is not up")

// Manager manages the cluster of one directory.
type Manager struct {
	layout.Cluster
	// Messages receives what a person may want to know, line by line.
	Messages io.Writer
}

// state is what cluster.json holds.
type state struct {
	Init process.Ref `json:"init"`
	// Server is the API server's URL on this machine.
	Server string `json:"server"`
	// Bin is the directory of the programs that it runs.
	Bin string `json:"bin"`
	// Network is the directory of its network's programs, if it runs them.
	Network string `json:"network,omitempty"`
}

func (m Manager) say(format string, args ...any) {
	fmt.Fprintf(m.Messages, "cluster: "+format+"\n", args...)
}

// load reads cluster.json. No file means no cluster: the zero state.
func (m Manager) load() (state, error) {
	b, err := os.ReadFile(m.State())
	if errors.Is(err, os.ErrNotExist) {
		return state{}, nil
	}
	if err != nil {
		return state{}, fmt.Errorf("reading the cluster's state: %w", err)
	}
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return state{}, fmt.Errorf("reading the cluster's state from %s: %w", m.State(), err)
	}
	return s, nil
}

func (m Manager) save(s state) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the cluster's state: %w", err)
	}
	if err := os.WriteFile(m.State(), b, 0o644); err != nil {
		return fmt.Errorf("writing the cluster's state: %w", err)
	}
	return nil
}

// lock makes sure that only one up or down works on the directory. The lock ends with the returned file.
func (m Manager) lock() (io.Closer, error) {
	f, err := os.OpenFile(m.Path("lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the cluster's directory: %w", err)
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return f, nil
	}
	m.say("another up or down is at work on %s, waiting for it", m.Dir)
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking the cluster's directory: %w", err), f.Close())
	}
	return f, nil
}

func host() (cgroup.Host, error) {
	b, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return cgroup.Host{}, fmt.Errorf("reading the mount table: %w", err)
	}
	return cgroup.Detect(string(b)), nil
}

// running loads the state of a cluster that has to be up.
func (m Manager) running() (state, error) {
	s, err := m.load()
	if err != nil {
		return s, err
	}
	if !s.Init.Alive() {
		return s, ErrNotUp
	}
	return s, nil
}

// client talks to the API server as administrator. It needs root, as the keys do.
func (m Manager) client(s state) (*apiclient.Client, error) {
	return apiclient.New(m.PKI(), "admin", s.Server)
}

// healthy returns nil if the API server serves and the nodes are ready.
func (m Manager) healthy(ctx context.Context, s state) error {
	api, err := m.client(s)
	if err != nil {
		return err
	}
	defer api.Close()
	if err := api.Healthy(ctx); err != nil {
		return err
	}
	for _, node := range nodesOf(s) {
		if err := api.NodeReady(ctx, node.Name); err != nil {
			return err
		}
	}
	return nil
}

// nodesOf are the nodes of a running cluster: those whose containerd has a socket.
func nodesOf(s state) (nodes []layout.Node) {
	for _, node := range layout.Nodes {
		if _, err := os.Stat(s.path(node.ContainerdSocket())); err == nil || len(nodes) == 0 {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// path is a path as the cluster's first process sees it.
func (s state) path(name string) string { return fmt.Sprintf("/proc/%d/root%s", s.Init.PID, name) }

// Status writes what there is to know and returns ErrNotUp, or why the cluster is not healthy.
func (m Manager) Status(ctx context.Context, out io.Writer) error {
	s, err := m.running()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "server      %s\nkubeconfig  %s\nprograms    %s\nlogs        %s\n", s.Server, m.Kubeconfig(), s.Bin,
		filepath.Dir(m.Log("x")))
	for _, name := range Components {
		if child, ok := s.Init.Child(name); ok {
			fmt.Fprintf(out, "%-25s process %d\n", name, child.PID)
		} else {
			fmt.Fprintf(out, "%-25s not running\n", name)
		}
	}
	return m.healthy(ctx, s)
}

// Components are the programs that the cluster keeps running.
var Components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "containerd",
	"kubelet"}

// Load imports image tars into the nodes. containerd's socket is reached through the first process's view of the
// file system, so no namespace has to be entered.
func (m Manager) Load(ctx context.Context, tars []string) error {
	s, err := m.running()
	if err != nil {
		return err
	}
	for _, tar := range tars {
		for _, node := range nodesOf(s) {
			ctr := exec.CommandContext(ctx, layout.Cluster{Bin: s.Bin}.Program("ctr"),
				component.ImportImage(s.path(node.ContainerdSocket()), tar)...)
			if b, err := ctr.CombinedOutput(); err != nil {
				return fmt.Errorf("loading %s: %w: %s", tar, err, strings.TrimSpace(string(b)))
			}
		}
		m.say("loaded %s", tar)
	}
	return nil
}

// Exec is a command on the node, ready to run: in all namespaces of the cluster's first process. What it starts ends
// with the cluster.
func (m Manager) Exec(ctx context.Context, args []string) (*exec.Cmd, error) {
	s, err := m.running()
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--target=" + strconv.Itoa(s.Init.PID),
		"--mount", "--net", "--pid", "--ipc", "--uts", "--wdns=" + dir, "--"}, args...)...)
	cmd.Env = append(os.Environ(), boot.InsideVariable+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd, nil
}

// Kubectl is kubectl for this cluster, ready to run.
func (m Manager) Kubectl(ctx context.Context, args []string) (*exec.Cmd, error) {
	s, err := m.running()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, layout.Cluster{Bin: s.Bin}.Program("kubectl"),
		append([]string{"--kubeconfig=" + m.Kubeconfig()}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd, nil
}
