// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command testplan knows which target of make runs the tests of each package, and what a change can affect.
//
//	go run ./hack/testplan LIST [PACKAGE...]      prints the packages of a list, or those of them that are named
//	go run ./hack/testplan reasons [PACKAGE...]   prints the target of each package, and why it needs the race detector
//	go run ./hack/testplan changed [REVISION]     prints the arguments of make that test what changed since a revision
//
// The lists are unit-race and unit-plain (the unit tests with and without the race detector), cluster (the unit tests
// of the local cluster), integration and crash.
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "testplan:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, explanation io.Writer) error {
	r, err := load(ctx, ".", modules)
	if err != nil {
		return err
	}
	return r.execute(ctx, args, out, explanation)
}

// execute does what the arguments ask for.
func (r repository) execute(ctx context.Context, args []string, out, explanation io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("the first argument is missing: name one of %s", strings.Join(commands(), ", "))
	}
	switch name, args := args[0], args[1:]; {
	case name == "changed":
		return printChanged(ctx, r, strings.Join(args, ""), out, explanation)
	case name == "reasons":
		return printReasons(out, r.packages, args)
	case lists[name] != nil:
		return printList(out, r.packages, lists[name], args)
	default:
		return fmt.Errorf("there is no list %q: name one of %s", name, strings.Join(commands(), ", "))
	}
}

// commands are the possible first arguments.
func commands() []string {
	return append(slices.Sorted(maps.Keys(lists)), "reasons", "changed")
}

// printList prints the packages of a list that the arguments name, or all of them without arguments.
func printList(out io.Writer, g graph, isListed func(graph, goPackage) bool, args []string) error {
	all, err := g.named(args)
	if err != nil {
		return err
	}
	for _, p := range all {
		if isListed(g, p) {
			fmt.Fprintln(out, p.Path)
		}
	}
	return nil
}

// printReasons prints one line for each package with tests.
func printReasons(out io.Writer, g graph, args []string) error {
	all, err := g.named(args)
	if err != nil {
		return err
	}
	for _, p := range all {
		reason := g.raceReason(p)
		if reason == "" {
			reason = "plain"
		}
		fmt.Fprintf(out, "%-16s  %-45s  %s\n", g.targetOf(p), p.Dir, reason)
	}
	return nil
}

// named are the packages with tests that the arguments name by path or folder. Without arguments it is all of them.
func (g graph) named(args []string) (all []goPackage, err error) {
	for _, arg := range args {
		dir := strings.TrimSuffix(strings.TrimPrefix(arg, "./"), "/")
		found := slices.DeleteFunc(g.tested(), func(p goPackage) bool { return p.Path != arg && p.Dir != dir })
		if len(found) == 0 {
			return nil, fmt.Errorf("there is no package %q with tests: name folders such as internal/chat/plan", arg)
		}
		all = append(all, found...)
	}
	if len(args) == 0 {
		all = g.tested()
	}
	return all, nil
}
