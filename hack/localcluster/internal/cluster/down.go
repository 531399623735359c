// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// stopTimeout bounds a stop. It takes well under a second.
const stopTimeout = 30 * time.Second

// owned is everything a cluster makes in its directory, apart from the logs. Nothing else is ever removed.
var owned = []string{"fs", "etcd", "tmp", "pki", "kubelet-pki", "kubelet-pki-node2", "containerd.toml",
	"containerd-node2.toml", "kubelet.yaml", "kubelet-node2.yaml", "kubeconfig", "cluster.json", "egress"}

// Down stops the cluster and removes everything but its logs. A cluster that is not up is no error.
func (m Manager) Down(ctx context.Context) error {
	if err := m.Check(); err != nil {
		return err
	}
	if _, err := os.Stat(m.Dir); errors.Is(err, os.ErrNotExist) {
		m.say("not up")
		return nil
	}
	if os.Geteuid() != 0 {
		return ErrNeedsRoot
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
	wasUp := s.Init.Alive()
	if err := m.clean(ctx, s); err != nil {
		return err
	}
	if wasUp {
		m.say("down")
	} else {
		m.say("not up")
	}
	return nil
}

// cleanUp removes what a failed start made.
func (m Manager) cleanUp(ctx context.Context) error {
	s, err := m.load()
	if err != nil {
		return err
	}
	return m.clean(ctx, s)
}

// clean ends the ways out, then the first process, and with it all others and all mounts, and removes what stays: the
// control group and the files.
func (m Manager) clean(ctx context.Context, s state) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := m.closeWays(ctx); err != nil {
		return err
	}
	if err := s.Init.Kill(ctx); err != nil {
		return err
	}
	groups, err := host()
	if err != nil {
		return err
	}
	if err := groups.Remove(ctx, m.Cgroup()); err != nil {
		return err
	}
	if err := m.refuseMounts(); err != nil {
		return err
	}
	for _, name := range owned {
		if err := os.RemoveAll(m.Path(name)); err != nil {
			return fmt.Errorf("removing the cluster's files: %w", err)
		}
	}
	return nil
}

// refuseMounts makes sure that removing files cannot reach through a mount into something else.
func (m Manager) refuseMounts() error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("reading the mount table: %w", err)
	}
	defer func() { _ = f.Close() }() // it is only read
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		const mountPoint = 4 // the fifth field, see proc(5)
		fields := strings.Fields(lines.Text())
		if len(fields) > mountPoint && strings.HasPrefix(fields[mountPoint], m.Dir+"/") {
			return fmt.Errorf("%s is a mount point: unmount it, then try again", fields[mountPoint])
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the mount table: %w", err)
	}
	return nil
}
