// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gobuild runs "go build", and shows how far it is and how long it takes from here.
//
//	gobuild [flags] -- [flags of go build] [packages]
//
//	-label TEXT             what the lines begin with
//	-after DURATION         how long what follows the builds takes
//	-plan FILE              two builds share an estimate through this file: the first writes it, the second removes it
//	-then DIR=PACKAGE,...   makes this the first of the two, and says what the second compiles, in the module in DIR
//
// Flags of go build have their values behind "=".
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// interval is how often the progress is shown.
	interval = 10 * time.Second
	// quiet is how long finding out what is to be built may take before it is shown: longer, it downloads modules.
	quiet = 4 * time.Second
)

type options struct {
	label, then, plan string
	after             time.Duration
	args              []string
	out               io.Writer
}

func main() {
	o := options{out: os.Stderr}
	flag.StringVar(&o.label, "label", "build", "what the lines begin with")
	flag.StringVar(&o.then, "then", "", "DIR=PACKAGE,...: what the next build compiles, in another module")
	flag.DurationVar(&o.after, "after", 0, "how long what follows the builds takes")
	flag.StringVar(&o.plan, "plan", "", "the file with which builds share an estimate")
	flag.Parse()
	o.args = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", o.label, err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	p, err := o.load(ctx)
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", append([]string{"build", "-v"}, o.args...)...)
	build.Stdout, build.Env = os.Stdout, environment()
	output, err := build.StderrPipe()
	if err != nil {
		return fmt.Errorf("reading what go build prints: %w", err)
	}
	if err := build.Start(); err != nil {
		return fmt.Errorf("starting go build: %w", err)
	}
	o.follow(output, p)
	if err := build.Wait(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	return o.keep(p)
}

// environment lets each compiler collect garbage only when it holds 3 GiB: a tenth less work, measured with client-go.
// A limit below what the largest packages need costs more than it saves: at 1 GiB, the client of Anthropic takes 72 s
// in place of 27. Settings of the user win.
func environment() []string {
	env := os.Environ()
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		env = append(env, "GOGC=off", "GOMEMLIMIT=3GiB")
	}
	return env
}

// load is the plan of the build before this one, or a new one.
func (o options) load(ctx context.Context) (*plan, error) {
	if o.plan != "" && o.then == "" {
		if p, err := loadPlan(o.plan, time.Now()); p != nil || err != nil {
			return p, err
		}
	}
	began := time.Now()
	p := newPlan(began, o.after)
	notice := time.AfterFunc(quiet, func() { fmt.Fprintf(o.out, "%s: downloading Go modules\n", o.label) })
	defer notice.Stop()
	if err := add(ctx, p, ".", o.args); err != nil {
		return nil, err
	}
	if dir, packages, ok := strings.Cut(o.then, "="); ok {
		if err := add(ctx, p, dir, strings.Split(packages, ",")); err != nil {
			return nil, err
		}
	}
	p.Began = time.Now()
	if !notice.Stop() {
		fmt.Fprintf(o.out, "%s: modules downloaded (%.0f s)\n", o.label, p.Began.Sub(began).Seconds())
	}
	return p, nil
}

// keep leaves the plan for the next build, or removes it after the last.
func (o options) keep(p *plan) error {
	if o.plan == "" {
		return nil
	}
	if o.then != "" {
		return p.save(o.plan)
	}
	if err := os.Remove(o.plan); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the plan: %w", err)
	}
	return nil
}

// add adds the packages to the plan that building from dir compiles. It downloads the modules that they are in.
func add(ctx context.Context, p *plan, dir string, args []string) error {
	flags := []string{"list", "-deps", "-json=ImportPath,Name,Dir,GoFiles,Deps"}
	list := exec.CommandContext(ctx, "go", append(flags, packages(args)...)...)
	list.Dir = dir
	listed, err := list.Output()
	if err != nil {
		return nil //nolint:nilerr // The build fails for the same reason, and says it.
	}
	stale, err := stalePackages(ctx, dir, args)
	if err != nil {
		return err
	}
	for decoder := json.NewDecoder(bytes.NewReader(listed)); ; {
		var found struct {
			ImportPath, Name, Dir string
			GoFiles, Deps         []string
		}
		if err := decoder.Decode(&found); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("decoding what go list prints: %w", err)
		}
		if stale[found.ImportPath] {
			p.add(found.ImportPath, size{bytes: bytesOf(found.Dir, found.GoFiles), dependencies: len(found.Deps),
				isProgram: found.Name == "main"})
		}
	}
}

// packages are the arguments of go build that are no flags.
func packages(args []string) (names []string) {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			names = append(names, a)
		}
	}
	return names
}

// stalePackages are those that are not in the build cache: go build -n names each in a line of its own.
func stalePackages(ctx context.Context, dir string, args []string) (map[string]bool, error) {
	dry := exec.CommandContext(ctx, "go", append([]string{"build", "-n"}, args...)...)
	dry.Dir = dir
	text, err := dry.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) { // What is wrong with the packages, the build says.
		return nil, fmt.Errorf("asking what is to be built: %w", err)
	}
	stale := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "# "); ok {
			stale[path] = true
		}
	}
	return stale, nil
}

func bytesOf(dir string, files []string) (bytes int64) {
	for _, name := range files {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// follow reads what go build prints, shows how far it is, and passes on what is neither a package nor a download.
func (o options) follow(output io.Reader, p *plan) {
	shown := time.Now()
	for lines := bufio.NewScanner(output); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "go: downloading "):
		case strings.ContainsAny(line, " \t"):
			fmt.Fprintln(o.out, line)
		default:
			p.done(line)
		}
		if now := time.Now(); now.Sub(shown) >= interval {
			shown = now
			fmt.Fprintf(o.out, "%s: %s%s\n", o.label, p, left(p, now))
		}
	}
}

func left(p *plan, now time.Time) string {
	d, ok := p.left(now)
	if !ok {
		return ""
	}
	return fmt.Sprintf(", about %s left", d.Round(10*time.Second))
}
