// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// printChanged prints the arguments of make for what changed since the revision, one a line, and explains them.
func printChanged(ctx context.Context, r repository, revision string, out, explanation io.Writer) error {
	if revision == "" {
		revision = base(ctx)
	}
	files, deleted, err := changedFiles(ctx, revision)
	if err != nil {
		return err
	}
	s := r.affected(files, deleted)
	fmt.Fprintf(explanation, "test-changed: %d files changed since %s\n", len(files)+len(deleted), revision)
	explain(explanation, r.packages, s)
	for _, argument := range s.arguments(len(r.packages.tested())) {
		fmt.Fprintln(out, argument)
	}
	return nil
}

// allTargets are the targets that a change can select, in the order in which they run.
var allTargets = append(slices.Clone(makeTest), headlamp, archive)

// arguments are the targets of make and, if only some of the tested packages are selected, the packages.
func (s selection) arguments(tested int) (all []string) {
	if s.unknown != "" {
		return makeTest
	}
	for _, target := range allTargets {
		if s.targets[target] != "" {
			all = append(all, target)
		}
	}
	if len(s.packages) > 0 && len(s.packages) < tested {
		all = append(all, "PACKAGES="+strings.Join(slices.Sorted(maps.Keys(s.packages)), " "))
	}
	return all
}

// explain prints a line for each target: how many packages run, and the file that selects it.
func explain(out io.Writer, g graph, s selection) {
	if s.unknown != "" {
		fmt.Fprintf(out, "  everything: it is not known what uses %s (see hack/testplan/rules.go)\n", s.unknown)
		return
	}
	count := map[string]int{}
	for path := range s.packages {
		count[g.targetOf(g[path])]++
	}
	for _, target := range allTargets {
		file := s.targets[target]
		if file == "" {
			continue
		}
		number := ""
		if count[target] > 0 {
			number = fmt.Sprintf("%d packages", count[target])
		}
		fmt.Fprintf(out, "  %-17s %-13s %s\n", target, number, file)
	}
	if len(s.targets) == 0 {
		fmt.Fprintln(out, "  no test uses them")
	}
}

// base is the revision to compare with: the last one that is also in origin/main, or the one before HEAD.
func base(ctx context.Context) string {
	if out, err := git(ctx, "merge-base", "HEAD", "origin/main"); err == nil && len(out) > 0 {
		return out[0]
	}
	return "HEAD~1"
}

// changedFiles are the files that differ from the revision, uncommitted and untracked ones included.
func changedFiles(ctx context.Context, revision string) (files, deleted []string, err error) {
	diff := []string{"diff", "--name-only", "--no-renames", "-z", revision}
	if deleted, err = git(ctx, append(diff, "--diff-filter=D", "--")...); err != nil {
		return nil, nil, fmt.Errorf("comparing with %s (name another revision by BASE=...): %w", revision, err)
	}
	if files, err = git(ctx, append(diff, "--diff-filter=d", "--")...); err != nil {
		return nil, nil, fmt.Errorf("comparing with %s: %w", revision, err)
	}
	untracked, err := git(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, nil, fmt.Errorf("listing untracked files: %w", err)
	}
	return append(files, untracked...), deleted, nil
}

// git runs git, and splits what it prints at line feeds and at NUL.
func git(ctx context.Context, args ...string) ([]string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("git %s: %w\n%s", args[0], err, stderr.String())
	}
	return strings.FieldsFunc(stdout.String(), func(r rune) bool { return r == 0 || r == '\n' }), nil
}
