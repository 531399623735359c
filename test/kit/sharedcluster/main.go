// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sharedcluster runs a command, such as go test, whose test binaries share one control plane. It starts the
// control plane when the first of them asks for it, and ends it with the command. A control plane also ends with this
// program if that is killed.
package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"parley.dev/parley/test/kit/testcluster"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		report(err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func report(err error) { fmt.Fprintln(os.Stderr, "sharedcluster:", err) }

// run runs the command, and returns the code that it exits with.
func run(command []string) (code int, err error) {
	if len(command) == 0 {
		return 2, errors.New("name the command to run, such as sharedcluster go test ./internal/gateway")
	}
	ctrl.SetLogger(logr.Discard()) // controller-runtime prints a stack trace if there is no logger.
	listener, err := listen()
	if err != nil {
		return 1, err
	}
	sharer := &testcluster.Sharer{Listener: listener, Report: report,
		Start: func() (*testcluster.Cluster, error) { return testcluster.Start(context.Background()) }}
	go sharer.Serve()
	code, err = execute(command, listener.Addr().String())
	return code, errors.Join(err, sharer.Stop())
}

// execute runs the command with the socket in its environment, and passes signals on to it.
func execute(command []string, socket string) (code int, err error) {
	cmd := exec.CommandContext(context.Background(), command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), testcluster.SharedVariable+"="+socket)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("starting %s: %w", command[0], err)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // It may have ended.
		}
	}()
	err = cmd.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		return max(cmd.ProcessState.ExitCode(), 1), nil
	}
	if err != nil {
		return 1, fmt.Errorf("waiting for %s: %w", command[0], err)
	}
	return 0, nil
}

// listen opens the socket. Its path is the same for each run in a folder, because Go caches the results of tests by
// the environment that they read. A second run in the same folder gets another path.
func listen() (net.Listener, error) {
	folder, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the folder: %w", err)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(folder)) // It never fails.
	socket := filepath.Join(os.TempDir(), fmt.Sprintf("parley-testcluster-%d-%x.sock", os.Getuid(), h.Sum64()))
	if conn, err := (&net.Dialer{}).DialContext(context.Background(), "unix", socket); err == nil {
		_ = conn.Close() // Nothing was read.
		socket = fmt.Sprintf("%s.%d", socket, os.Getpid())
	} else {
		_ = os.Remove(socket) // A run that was killed leaves it.
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listening for test binaries: %w", err)
	}
	return listener, nil
}
