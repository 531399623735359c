// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install tests every way to install a release, with the programs that people use: kubectl, Helm, kubectl chat,
// a registry that requires a login, and nginx. "make test-install" makes a release and runs the tests on the node of a
// fresh local cluster, because they change /etc/hosts and the configuration of containerd there.
//
// One Parley can be in a cluster, so the tests run one after the other, and each removes what it installed.
package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// onNode is set in the environment of commands that "devcluster exec" runs.
const onNode = "PARLEY_INSIDE_CLUSTER"

var (
	// release is the folder of the release, and reference its image.
	release   = os.Getenv("RELEASE")
	reference string
	// root is the folder of the sources, and temporary that of files for all tests.
	root, temporary string
)

func TestMain(m *testing.M) {
	if os.Getenv(onNode) == "" {
		fmt.Fprintln(os.Stderr, "the tests of installations are skipped: they need the node of a local cluster. "+
			"Run make test-install")
		os.Exit(0)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err := setUp(ctx)
	code := 1
	if err == nil {
		code = m.Run()
	}
	cancel()
	if err = errors.Join(err, os.RemoveAll(temporary)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// setUp starts the registry, pushes the release, and prepares the node.
func setUp(ctx context.Context) (err error) {
	if root, err = filepath.Abs("../../.."); err != nil {
		return err
	}
	if temporary, err = os.MkdirTemp("", "parley-install-"); err != nil {
		return err
	}
	line, err := os.ReadFile(filepath.Join(release, "images.txt"))
	if err != nil {
		return fmt.Errorf("reading which image the release has: %w", err)
	}
	reference = strings.TrimSpace(string(line))
	for _, step := range []func(context.Context) error{useOwnKubeconfig, startRegistry, pushRelease} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	_, err = run(ctx, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low}, value: 1000}",
		os.Getenv("KUBECTL"), "apply", "-f", "-")
	return err
}

// useOwnKubeconfig has all programs reach the API server from the node.
func useOwnKubeconfig(ctx context.Context) error {
	text, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	own := filepath.Join(temporary, "kubeconfig")
	if err := errors.Join(os.WriteFile(own, text, 0o600), os.Setenv("KUBECONFIG", own)); err != nil {
		return err
	}
	_, err = run(ctx, "", os.Getenv("KUBECTL"), "config", "set-cluster", "parley", "--server=https://127.0.0.1:443")
	return err
}

// run runs a program and returns its output. The error has what it printed.
func run(ctx context.Context, input, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(program), strings.Join(args, " "), err,
			out.String(), errs.String())
	}
	return out.String(), nil
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := try(t, "", args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// try runs kubectl, also after the test has ended.
func try(t *testing.T, input string, args ...string) (string, error) {
	return run(context.WithoutCancel(t.Context()), input, os.Getenv("KUBECTL"), args...)
}

func helm(t *testing.T, args ...string) {
	t.Helper()
	if _, err := run(context.WithoutCancel(t.Context()), "", os.Getenv("HELM"), args...); err != nil {
		t.Fatal(err)
	}
}

// apply applies objects in YAML to a namespace.
func apply(t *testing.T, namespace, objects string) {
	t.Helper()
	if _, err := try(t, objects, "apply", "--server-side", "--namespace="+namespace, "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, objects string) {
	t.Helper()
	if _, err := try(t, objects, "delete", "--ignore-not-found", "-f", "-"); err != nil {
		t.Error(err)
	}
}

// write writes a file of a test, and returns its path.
func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func copyFile(t *testing.T, file, dir string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, filepath.Base(file), string(content))
}

// eventually waits until the condition holds. It asks programs, so it does not ask often.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for tick := time.NewTicker(250 * time.Millisecond); !condition(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the wait timed out: %s", what)
		}
	}
}
