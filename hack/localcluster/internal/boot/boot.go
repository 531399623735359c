// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package boot brings a cluster up from inside: it is the first process (PID 1) of private mount, network, process,
// IPC and host-name namespaces.
//
// Everything it makes lives in those namespaces. When this process ends, however it ends, the kernel ends every
// other process of the cluster and drops every mount, link and address; nothing has to be undone step by step.
package boot

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"parley.dev/parley/hack/localcluster/internal/apiclient"
	"parley.dev/parley/hack/localcluster/internal/component"
	"parley.dev/parley/hack/localcluster/internal/forward"
	"parley.dev/parley/hack/localcluster/internal/layout"
	"parley.dev/parley/hack/localcluster/internal/pki"
	"parley.dev/parley/hack/localcluster/internal/storage"
	"parley.dev/parley/hack/localcluster/internal/supervise"
)

// poll is how often a condition is looked at while the cluster starts.
const poll = 50 * time.Millisecond

// InsideVariable is set in the environment of everything that runs inside a cluster.
const InsideVariable = "PARLEY_INSIDE_CLUSTER"

// Node is a cluster that starts.
type Node struct {
	cluster  layout.Cluster
	programs *supervise.Supervisor
	api      *apiclient.Client
	progress io.Writer
	log      *slog.Logger
	began    time.Time
	fail     context.CancelCauseFunc
}

// Run brings the cluster up, writes its progress as lines (see Step, Ready, Failed) and then keeps it running
// until ctx ends. ln is the listener on the machine's loopback that leads to the API server.
func Run(ctx context.Context, l layout.Cluster, ln net.Listener, progress io.WriteCloser, log *slog.Logger) error {
	env := []string{"PATH=" + l.NodeDir() + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
		"LANG=C", InsideVariable + "=1"}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	n := &Node{cluster: l, programs: supervise.New(env, log), progress: progress, log: log, began: time.Now(), fail: fail}
	go n.programs.Reap(ctx)

	if err := n.start(ctx); err != nil {
		fmt.Fprintln(progress, Failed+oneLine(err))
		return err
	}
	n.programs.Settle()
	fmt.Fprintln(progress, Ready)
	if err := progress.Close(); err != nil {
		return fmt.Errorf("reporting that the cluster is up: %w", err)
	}
	return forward.Serve(ctx, ln, layout.APIServer)
}

// start takes the steps in order.
func (n *Node) start(ctx context.Context) error {
	type step struct {
		name string
		do   func(context.Context) error
	}
	steps := []step{
		{"private mounts", n.mounts},
		{"private network", n.network},
		{"keys and configuration", n.configure},
		{"API server", n.controlPlane},
		{"container runtime", n.runtime},
		{"node", n.nodes},
		{"default service account", n.serviceAccount},
		{"default storage class", n.storage},
	}
	if n.cluster.Network != "" {
		steps = append(steps, step{"Services, DNS and NetworkPolicies", n.services})
	}
	for _, step := range steps {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Fprintf(n.progress, "%s%s (%.1f s)\n", Step, step.name, time.Since(n.began).Seconds())
	}
	return nil
}

func (n *Node) configure(context.Context) error {
	kubelets := map[string]string{}
	for _, node := range n.cluster.Nodes {
		kubelets[node.Own("kubelet")] = node.Name
	}
	err := pki.Write(pki.Options{
		Dir: n.cluster.PKI(), Server: "https://" + layout.APIServer, Kubelets: kubelets, Now: time.Now(),
		Names: []string{
			"localhost", "127.0.0.1", layout.Nodes[0].Name, layout.NodeIP, layout.ServiceIP,
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		},
	})
	if err != nil {
		return err
	}
	if n.api, err = apiclient.New(n.cluster.PKI(), "admin", "https://"+layout.APIServer); err != nil {
		return err
	}
	return component.WriteFiles(n.cluster)
}

// keep starts components; one that ends before the cluster is up ends the start.
func (n *Node) keep(ctx context.Context, cs ...component.Component) error {
	for _, c := range cs {
		p := supervise.Program{Name: c.Name, Path: c.Path, Args: c.Args, Log: n.cluster.Log(c.Name)}
		if err := n.programs.Keep(ctx, p, n.fail); err != nil {
			return err
		}
	}
	return nil
}

// controlPlane also starts containerd, which needs nothing of the API server and can start meanwhile.
func (n *Node) controlPlane(ctx context.Context) error {
	l := n.cluster
	programs := []component.Component{component.Etcd(l), component.APIServer(l)}
	for _, node := range l.Nodes {
		programs = append(programs, component.Containerd(l, node))
	}
	if err := n.keep(ctx, programs...); err != nil {
		return err
	}
	if err := apiclient.Until(ctx, poll, n.api.Healthy); err != nil {
		return err
	}
	return n.keep(ctx, component.ControllerManager(l), component.Scheduler(l))
}

// runtime waits for the containerd of each node, and loads the images that every node needs.
func (n *Node) runtime(ctx context.Context) error {
	for _, node := range n.cluster.Nodes {
		if err := n.runtimeOf(ctx, node.ContainerdSocket()); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) runtimeOf(ctx context.Context, socket string) error {
	err := apiclient.Until(ctx, poll, func(ctx context.Context) error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", socket)
		if err != nil {
			return fmt.Errorf("containerd does not answer: %w", err)
		}
		return conn.Close()
	})
	if err != nil {
		return err
	}
	images, err := filepath.Glob(filepath.Join(n.cluster.Images(), "*.tar"))
	if err != nil {
		return fmt.Errorf("looking for images: %w", err)
	}
	for _, tar := range images {
		p := supervise.Program{Name: "ctr", Path: n.cluster.Program("ctr"),
			Args: component.ImportImage(socket, tar), Log: n.cluster.Log("ctr")}
		if err := n.programs.Run(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// nodes starts the kubelets, by way of this program (see RunKubelet), and waits until the nodes take pods.
func (n *Node) nodes(ctx context.Context) error {
	for _, node := range n.cluster.Nodes {
		k := component.Kubelet(n.cluster, node)
		args := append([]string{"-dir=" + n.cluster.Dir, "-bin=" + n.cluster.Bin, KubeletCommand, k.Path}, k.Args...)
		if err := n.keep(ctx, component.Component{Name: k.Name, Path: "/proc/self/exe", Args: args}); err != nil {
			return err
		}
	}
	for _, node := range n.cluster.Nodes {
		if err := apiclient.Until(ctx, poll, func(ctx context.Context) error {
			return n.api.NodeReady(ctx, node.Name)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) serviceAccount(ctx context.Context) error {
	return apiclient.Until(ctx, poll, n.api.ServiceAccount)
}

// storage lets claims be bound. This process serves them itself, as long as it lives.
func (n *Node) storage(ctx context.Context) error {
	p := &storage.Provisioner{API: n.api, Dir: layout.VolumesDir, Log: n.log}
	for _, node := range n.cluster.Nodes {
		p.Nodes = append(p.Nodes, node.Name)
	}
	if err := apiclient.Until(ctx, poll, p.Install); err != nil {
		return err
	}
	go p.Serve(ctx)
	return nil
}

// run runs a small program to its end.
func (n *Node) run(ctx context.Context, path string, args ...string) error {
	return n.programs.Run(ctx, supervise.Program{Name: filepath.Base(path), Path: path, Args: args,
		Log: n.cluster.Log("setup")})
}

// writeFile replaces a file, be it a link to somewhere else or not.
func writeFile(path, body string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("replacing %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
