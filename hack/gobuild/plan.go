// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Costs of a package, in seconds of a core of a reference machine: a fit to 3,700 packages of Kubernetes and Parley.
// Only their ratio matters, since the machine's own speed is measured on the way. A compiler reads what a package
// depends on, so that small packages with many dependencies take long, too.
const (
	perDependency = 0.4e-3
	perByte       = 2e-6
	fixed         = -0.05
	least         = 0.02
	// mostBytes limits the size that counts: what is larger has tables.
	mostBytes = 3_000_000
	// perLinked is what linking a program takes for each of its dependencies.
	perLinked = 1.6e-3
)

// enough is the part of the work after which a plan knows the machine's speed: before, it predicts nothing.
const enough = 0.03

// plan is what several builds that follow each other compile, and how far they are.
type plan struct {
	// Began is when the first build began to compile.
	Began time.Time `json:"began"`
	// Costs are those of the packages, by import path.
	Costs map[string]float64 `json:"costs"`
	// Compiled are the packages that are done.
	Compiled map[string]bool `json:"compiled"`
	// After is how long what follows the builds takes: it waits more than it computes, so that the speed of the machine
	// does not matter.
	After time.Duration `json:"after"`

	// resumed is when this build began, and before the cost of what the earlier build has compiled; zero in the first.
	resumed time.Time
	before  float64
}

// newPlan is a plan without packages, for what takes that long after the builds.
func newPlan(began time.Time, after time.Duration) *plan {
	return &plan{Began: began, Costs: map[string]float64{}, Compiled: map[string]bool{}, After: after}
}

// add adds a package. A package that several builds need is compiled once.
func (p *plan) add(path string, s size) {
	cost := max(least, fixed+perDependency*float64(s.dependencies)+perByte*float64(min(s.bytes, mostBytes)))
	if s.isProgram {
		cost += perLinked * float64(s.dependencies)
	}
	p.Costs[path] = cost
}

// size is what the cost of a package follows from: its bytes of source, and how many packages it depends on.
type size struct {
	bytes        int64
	dependencies int
	isProgram    bool
}

// done notes that a package is compiled. Packages that are not in the plan do not count.
func (p *plan) done(path string) {
	if p.Costs[path] > 0 {
		p.Compiled[path] = true
	}
}

// left predicts how long the rest takes, at the speed of this build. Until that is known, the speed is that since the
// plan began, which includes linking and packing. false: it is too early to say.
func (p *plan) left(now time.Time) (time.Duration, bool) {
	total, done := p.cost()
	if done == 0 || done < enough*total {
		return 0, false
	}
	elapsed, compiled := now.Sub(p.Began), done
	if own := done - p.before; !p.resumed.IsZero() && own >= enough*total {
		elapsed, compiled = now.Sub(p.resumed), own
	}
	return time.Duration(float64(elapsed)*(total-done)/compiled) + p.After, true
}

// cost is that of all packages, and of those that are compiled.
func (p *plan) cost() (total, done float64) {
	for path, cost := range p.Costs {
		total += cost
		if p.Compiled[path] {
			done += cost
		}
	}
	return total, done
}

// String is how far the plan is.
func (p *plan) String() string {
	return fmt.Sprintf("%d of %d packages compiled", len(p.Compiled), len(p.Costs))
}

// loadPlan reads the plan that an earlier build left in the file, and resumes it; nil: there is none.
func loadPlan(file string, now time.Time) (*plan, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	p := newPlan(time.Time{}, 0)
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("decoding the plan in %s: %w", file, err)
	}
	p.resumed = now
	_, p.before = p.cost()
	return p, nil
}

// save writes the plan for the build that follows.
func (p *plan) save(file string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encoding the plan: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("making the plan's folder: %w", err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}
