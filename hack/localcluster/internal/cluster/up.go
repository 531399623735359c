// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"parley.dev/parley/hack/localcluster/internal/boot"
	"parley.dev/parley/hack/localcluster/internal/pki"
	"parley.dev/parley/hack/localcluster/internal/process"
)

// InsideCommand is the subcommand that the first process of a cluster runs as.
const InsideCommand = "inside"

// File descriptors that the first process is given.
const (
	// ListenerFD is the listener on the machine's loopback.
	ListenerFD = 3
	// ProgressFD takes the progress lines.
	ProgressFD = 4
)

// startTimeout bounds a start. It takes 4 s on an idle machine with 2 cores.
const startTimeout = 3 * time.Minute

// Up starts the cluster. One that is up and healthy is left as it is; one that is not healthy, or what a killed
// one left behind, is removed first. A failed start leaves its logs and nothing else.
func (m Manager) Up(ctx context.Context) error {
	if err := m.preflight(); err != nil {
		return err
	}
	if err := os.MkdirAll(m.Dir, 0o755); err != nil {
		return fmt.Errorf("creating the cluster's directory: %w", err)
	}
	lock, err := m.lock()
	if err != nil {
		return err
	}
	defer lock.Close()

	s, err := m.load()
	if err != nil {
		return err
	}
	if s.Init.Alive() {
		if err := m.healthy(ctx, s); err == nil {
			return m.keep(s)
		}
		m.say("up but not healthy, starting again")
	}
	if err := m.clean(ctx, s); err != nil {
		return err
	}
	began := time.Now()
	if err := m.startAll(ctx); err != nil {
		// The start's own context may have ended; removing what it made must not depend on it.
		return errors.Join(err, m.cleanUp(context.WithoutCancel(ctx)))
	}
	m.say("ready after %.1f s", time.Since(began).Seconds())
	return nil
}

// keep leaves a cluster that is up as it is, if it has as many nodes, and the network if that is needed.
func (m Manager) keep(s state) error {
	if has := len(nodesOf(s)); has < len(m.Nodes) {
		return fmt.Errorf("the cluster is up with %d nodes: take it down first to start one with %d", has, len(m.Nodes))
	}
	if m.Network != "" && s.Network == "" {
		return errors.New("the cluster is up without Services, DNS and NetworkPolicies: take it down first")
	}
	if m.Network == "" && s.Network != "" {
		return errors.New("the cluster is up with Services, DNS and NetworkPolicies: take it down first")
	}
	m.say("already up at %s", s.Server)
	if s.Bin != m.Bin {
		m.say("it runs the programs of %s; take it down first to run those of %s", s.Bin, m.Bin)
	}
	return nil
}

// startAll makes the directories, the control group and the first process, and waits until the cluster is ready.
func (m Manager) startAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("not ready after %s, see the logs in %s", startTimeout, m.Path("log")))
	defer cancel()
	if err := os.RemoveAll(m.Path("log")); err != nil {
		return fmt.Errorf("removing old logs: %w", err)
	}
	for _, d := range []string{"log", "tmp", "fs"} {
		if err := os.MkdirAll(m.Path(d), 0o755); err != nil {
			return fmt.Errorf("creating the cluster's directories: %w", err)
		}
	}
	groups, err := host()
	if err != nil {
		return err
	}
	for _, node := range m.Nodes {
		if err := groups.Create(m.CgroupOf(node)); err != nil {
			return err
		}
	}
	server, progress, err := m.startInit(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = progress.Close() }() // it is only read
	stop := context.AfterFunc(ctx, func() { _ = progress.Close() })
	defer stop()
	if err := m.follow(progress); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	return m.writeKubeconfig(server)
}

// startInit starts the first process in namespaces of its own and writes down its number. The process lives on when ctx
// ends. What is closed here are this program's copies of what the process has; nothing is written to them, so that
// their closing has nothing to report.
func (m Manager) startInit(ctx context.Context) (server string, progress *os.File, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // a free port: several clusters run side by side
	if err != nil {
		return "", nil, fmt.Errorf("listening on the loopback: %w", err)
	}
	defer func() { _ = ln.Close() }()
	listener, err := ln.(*net.TCPListener).File()
	if err != nil {
		return "", nil, fmt.Errorf("handing over the listener: %w", err)
	}
	defer func() { _ = listener.Close() }()
	read, write, err := os.Pipe()
	if err != nil {
		return "", nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer func() { _ = write.Close() }()
	log, err := os.Create(m.Log("init"))
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("creating a log: %w", err), read.Close())
	}
	defer func() { _ = log.Close() }()

	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/proc/self/exe", "-dir="+m.Dir, "-bin="+m.Bin,
		"-nodes="+strconv.Itoa(len(m.Nodes)), "-network="+m.Network, InsideCommand)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{listener, write} // in the order of ListenerFD and ProgressFD
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, // the cluster outlives the terminal
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID |
			syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	if err := cmd.Start(); err != nil {
		return "", nil,
			errors.Join(fmt.Errorf("making namespaces (this needs CAP_SYS_ADMIN; a container needs --privileged): %w", err),
				read.Close())
	}
	go func() { _ = cmd.Wait() }() // only collects it, should it end while this program still runs
	ref, err := process.Of(cmd.Process.Pid)
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("the cluster's first process ended at once, see %s: %w", m.Log("init"), err),
			read.Close())
	}
	server = "https://127.0.0.1:" + strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	if err := m.save(state{Init: ref, Server: server, Bin: m.Bin, Network: m.Network}); err != nil {
		return "", nil, errors.Join(err, cmd.Process.Kill(), read.Close())
	}
	return server, read, nil
}

// follow passes progress lines on until the cluster is ready or says why not.
func (m Manager) follow(progress io.Reader) error {
	lines := bufio.NewScanner(progress)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == boot.Ready:
			return nil
		case strings.HasPrefix(line, boot.Failed):
			return fmt.Errorf("starting: %s", boot.Reason(line))
		default:
			m.say("%s", strings.TrimPrefix(line, boot.Step))
		}
	}
	return fmt.Errorf("the cluster's first process ended while starting, see the logs in %s", m.Path("log"))
}

// writeKubeconfig writes the administrator's kubeconfig, for whoever called sudo.
func (m Manager) writeKubeconfig(server string) error {
	b, err := pki.Kubeconfig(m.PKI(), "admin", server)
	if err != nil {
		return err
	}
	if err := os.WriteFile(m.Kubeconfig(), b, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	if uid, gid, ok := sudoCaller(); ok {
		if err := os.Chown(m.Kubeconfig(), uid, gid); err != nil {
			return fmt.Errorf("handing the kubeconfig to the caller of sudo: %w", err)
		}
	}
	return nil
}

// sudoCaller is who called this program through sudo. ok is false if it was not called so.
func sudoCaller() (uid, gid int, ok bool) {
	uid, uidErr := strconv.Atoi(os.Getenv("SUDO_UID"))
	gid, gidErr := strconv.Atoi(os.Getenv("SUDO_GID"))
	return uid, gid, uidErr == nil && gidErr == nil
}
