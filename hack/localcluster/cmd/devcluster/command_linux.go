// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"syscall"

	"parley.dev/parley/hack/localcluster/internal/boot"
	"parley.dev/parley/hack/localcluster/internal/cluster"
	"parley.dev/parley/hack/localcluster/internal/layout"
)

// commands are the subcommands, by name. The last three are for devcluster itself.
var commands = map[string]func(ctx context.Context, m cluster.Manager, args []string) error{
	"up":      up,
	"down":    func(ctx context.Context, m cluster.Manager, _ []string) error { return hint(m.Down(ctx)) },
	"load":    func(ctx context.Context, m cluster.Manager, args []string) error { return hint(m.Load(ctx, args)) },
	"kubectl": program(cluster.Manager.Kubectl),
	"exec":    program(cluster.Manager.Exec),
	"status":  func(ctx context.Context, m cluster.Manager, _ []string) error { return hint(m.Status(ctx, os.Stdout)) },
	"restart": restart,
	"restart-apiserver": func(ctx context.Context, m cluster.Manager, _ []string) error {
		return hint(m.Restart(ctx, "kube-apiserver"))
	},
	"egress":              openEgress,
	cluster.EgressCommand: serveEgress,
	cluster.InsideCommand: inside,
	boot.KubeletCommand:   kubelet,
}

// command runs one subcommand on the cluster of a directory.
func command(ctx context.Context, dir, bin, network string, nodes int, name string, args []string) error {
	run, ok := commands[name]
	if !ok {
		fmt.Fprintln(os.Stderr, usage)
		return flag.ErrHelp
	}
	l, err := layout.New(dir, bin, network)
	if err != nil {
		return err
	}
	if nodes < 1 || nodes > len(layout.Nodes) {
		return fmt.Errorf("-nodes is %d: a cluster has 1 node or %d", nodes, len(layout.Nodes))
	}
	if nodes > 1 && network != "" {
		return errors.New("-network is set and -nodes is more than 1: network policies work for one node only")
	}
	l.Nodes = layout.Nodes[:nodes]
	return run(ctx, cluster.Manager{Cluster: l, Messages: os.Stderr}, args)
}

// up prints, alone on standard output, what makes the cluster the shell's own.
func up(ctx context.Context, m cluster.Manager, _ []string) error {
	if err := m.Up(ctx); err != nil {
		return hint(err)
	}
	fmt.Printf("export KUBECONFIG=%s\n", m.Kubeconfig())
	return nil
}

func restart(ctx context.Context, m cluster.Manager, args []string) error {
	if len(args) != 1 {
		return errors.New("restart wants the name of one component")
	}
	return hint(m.Restart(ctx, args[0]))
}

// openEgress prints the way's URL within the cluster.
func openEgress(ctx context.Context, m cluster.Manager, args []string) error {
	if len(args) != 1 {
		return errors.New("egress wants one origin, such as https://api.openai.com")
	}
	url, err := m.Egress(ctx, args[0])
	if err != nil {
		return hint(err)
	}
	fmt.Println(url)
	return nil
}

// program runs a program until it ends.
func program(prepare func(cluster.Manager, context.Context, []string) (*exec.Cmd, error),
) func(context.Context, cluster.Manager, []string) error {
	return func(ctx context.Context, m cluster.Manager, args []string) error {
		cmd, err := prepare(m, ctx, args)
		if err != nil {
			return hint(err)
		}
		return cmd.Run()
	}
}

// hint adds what to do about an error that a person can do something about.
func hint(err error) error {
	switch {
	case errors.Is(err, cluster.ErrNeedsRoot):
		return fmt.Errorf("%w. Or use a cluster you have instead:\n  KUBECONFIG=... USE_CURRENT_CONTEXT=1 make demo",
			err)
	case errors.Is(err, cluster.ErrNotUp):
		return fmt.Errorf("%w: start it with `make cluster-up`", err)
	}
	return err
}

var errInternal = errors.New("this command is for devcluster itself")

func serveEgress(ctx context.Context, m cluster.Manager, args []string) error {
	if len(args) != 1 {
		return errInternal
	}
	return m.ServeEgress(ctx, args[0])
}

// kubelet becomes the kubelet. Its parent is the first process, so that it can do no harm outside a cluster.
func kubelet(_ context.Context, m cluster.Manager, args []string) error {
	if os.Getppid() != 1 || len(args) == 0 || os.Getenv(boot.InsideVariable) == "" {
		return errInternal
	}
	return boot.RunKubelet(m.Cluster, args[0], args[1:])
}

// inside is the first process of the cluster. It is started by up, with the listener and the progress pipe.
func inside(ctx context.Context, m cluster.Manager, _ []string) error {
	if os.Getpid() != 1 {
		return errInternal
	}
	for _, fd := range []int{cluster.ListenerFD, cluster.ProgressFD} {
		syscall.CloseOnExec(fd) // the cluster's programs must not keep them open
	}
	file := os.NewFile(cluster.ListenerFD, "listener")
	ln, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("taking over the listener: %w", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("taking over the listener: %w", err)
	}
	progress := os.NewFile(cluster.ProgressFD, "progress")
	return boot.Run(ctx, m.Cluster, ln, progress, slog.New(slog.NewTextHandler(os.Stderr, nil)))
}
