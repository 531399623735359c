// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command mutants checks that the unit tests of the core find its faults. It puts one fault after another into the code
// that drives chats, and runs the tests of the fewest packages that fail at it:
//
//	go run ./test/mutants                all of them
//	go run ./test/mutants -run budget    those whose names match
//
// The working tree stays as it is: each fault is in a copy of its file, which the build takes in place of the file. Run
// it at the root of the repository.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mutant is one fault.
type mutant struct {
	// name is short, and breaks says what people would see.
	name, breaks string
	// file has old exactly once; the fault is new in its place.
	file, old, new string
	// tests are the packages whose tests must fail; nil: those of the file's folder.
	tests []string
}

func main() {
	names := flag.String("run", "", "regular expression of the names of the mutants to run")
	flag.Parse()
	if err := run(context.Background(), *names, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run puts all mutants with matching names to the test.
func run(ctx context.Context, names string, out io.Writer) error {
	match, err := regexp.Compile(names)
	if err != nil {
		return fmt.Errorf("reading -run: %w", err)
	}
	chosen := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return !match.MatchString(m.name) })
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant has a name that matches %q", names)
	}
	if err := passes(ctx, chosen); err != nil {
		return err
	}
	missed := 0
	for _, m := range chosen {
		found, err := m.run(ctx)
		if err != nil {
			missed++
			found = "ERROR: " + err.Error()
		}
		fmt.Fprintf(out, "%-18s %s\n", m.name, found)
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d mutants are not caught", missed, len(chosen))
	}
	fmt.Fprintf(out, "all %d mutants are caught\n", len(chosen))
	return nil
}

// passes makes sure that the tests pass without a mutant: only then does a failure tell anything.
func passes(ctx context.Context, chosen []mutant) error {
	var all []string
	for _, m := range chosen {
		all = append(all, m.packages()...)
	}
	slices.Sort(all)
	if said, err := test(ctx, "", slices.Compact(all)); err != nil {
		return fmt.Errorf("the tests fail without any mutant; fix them first: %w\n%s", err, said)
	}
	return nil
}

func (m *mutant) packages() []string {
	if m.tests == nil {
		return []string{"./" + filepath.Dir(m.file)}
	}
	return m.tests
}

// run returns the test that finds the mutant. The error says why there is none.
func (m *mutant) run(ctx context.Context) (found string, err error) {
	folder, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return "", fmt.Errorf("creating a folder for the mutant: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	overlay, err := m.write(folder)
	if err != nil {
		return "", err
	}
	said, err := test(ctx, overlay, m.packages())
	_, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return "", fmt.Errorf("it survives: write a test in %s that fails when this happens: %s",
			strings.Join(m.packages(), " or "), m.breaks)
	case !failed:
		return "", err
	case bytes.Contains(said, []byte("[build failed]")) || bytes.Contains(said, []byte("[setup failed]")):
		return "", fmt.Errorf("it does not compile: change its new text in test/mutants/table.go\n%s", said)
	}
	return firstFailure(said), nil
}

// write writes the changed copy of the file, and returns the description of it that the build takes.
func (m *mutant) write(folder string) (overlay string, err error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", fmt.Errorf("reading the file of the mutant; correct its place in test/mutants/table.go: %w", err)
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("%s has the old text %q %d times, want once: change the mutant in test/mutants/table.go so "+
			"that it still breaks this: %s", m.file, m.old, n, m.breaks)
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", m.file, err)
	}
	changed := filepath.Join(folder, "mutant.go")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", fmt.Errorf("describing the overlay: %w", err)
	}
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, errors.Join(os.WriteFile(overlay, replace, 0o600),
		os.WriteFile(changed, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600))
}

// test runs the tests of the packages until one fails.
func test(ctx context.Context, overlay string, packages []string) (said []byte, err error) {
	args := []string{"test", "-vet=off", "-failfast", "-timeout=2m", "-overlay=" + overlay}
	return exec.CommandContext(ctx, "go", append(args, packages...)...).CombinedOutput()
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^(panic: .*)`)

// firstFailure is the name of the first test that failed, or what a panic says.
func firstFailure(said []byte) string {
	if found := failure.FindSubmatch(said); found != nil {
		return string(found[1]) + string(found[2])
	}
	return "tests fail"
}
