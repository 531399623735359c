// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// began is when the plans of the tests begin.
var began = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// tenPackages is a plan of ten packages of 1 MB each.
func tenPackages(after time.Duration) *plan {
	p := newPlan(began, after)
	for i := range 10 {
		p.add(fmt.Sprint("example.com/", i), size{bytes: 1_000_000})
	}
	return p
}

func TestLeft(t *testing.T) {
	each := time.Duration(10 * tenPackages(0).Costs["example.com/0"] * float64(time.Second)) // A tenth of the speed.
	for name, c := range map[string]struct {
		done  int
		after time.Duration
		want  time.Duration
		known bool
	}{
		"nothing is compiled":    {0, 0, 0, false},
		"a quarter is compiled":  {2, 0, 8 * each, true},
		"everything is compiled": {10, 0, 0, true},
		"work after the builds":  {5, 10 * time.Second, 5*each + 10*time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := tenPackages(c.after)
			for i := range c.done {
				p.done(fmt.Sprint("example.com/", i))
			}
			got, known := p.left(began.Add(time.Duration(c.done) * each))
			if known != c.known || (got-c.want).Abs() > time.Millisecond {
				t.Errorf("got %s, %t; want %s, %t", got, known, c.want, c.known)
			}
		})
	}
}

func TestCostGrowsWithDependenciesAndLinking(t *testing.T) {
	p := newPlan(began, 0)
	p.add("small", size{bytes: 1000})
	p.add("connected", size{bytes: 1000, dependencies: 1000})
	p.add("program", size{bytes: 1000, dependencies: 1000, isProgram: true})
	p.add("table", size{bytes: 1e9})
	p.add("larger table", size{bytes: 2e9})
	if c := p.Costs; c["small"] >= c["connected"] || c["connected"] >= c["program"] || c["table"] != c["larger table"] {
		t.Errorf("got %v", c)
	}
}

func TestLeftWaitsForSomeProgress(t *testing.T) {
	p := tenPackages(0)
	p.add("example.com/small", size{})
	p.done("example.com/small")
	if _, known := p.left(began.Add(time.Second)); known {
		t.Error("predicts from a hundredth of the work")
	}
}

func TestPackagesOutsideThePlanDoNotCount(t *testing.T) {
	p := tenPackages(0)
	p.done("example.com/cached")
	if got := p.String(); got != "0 of 10 packages compiled" {
		t.Error(got)
	}
}

func TestSavedPlanContinuesAtItsOwnSpeed(t *testing.T) {
	p := tenPackages(30 * time.Second)
	p.done("example.com/0")
	file := filepath.Join(t.TempDir(), "folder", "plan.json")
	if err := p.save(file); err != nil {
		t.Fatal(err)
	}
	resumed := began.Add(time.Minute)
	loaded, err := loadPlan(file, resumed)
	if err != nil {
		t.Fatal(err)
	}
	if got, known := loaded.left(resumed); !known || got.Round(time.Second) != 9*time.Minute+30*time.Second {
		t.Errorf("at first got %s, %t", got, known)
	}
	loaded.done("example.com/1")
	if got, known := loaded.left(resumed.Add(10 * time.Second)); !known || got.Round(time.Second) != 110*time.Second {
		t.Errorf("then got %s, %t", got, known)
	}
}

func TestLoadWithoutFile(t *testing.T) {
	if p, err := loadPlan(filepath.Join(t.TempDir(), "plan.json"), began); p != nil || err != nil {
		t.Errorf("got %v, %v", p, err)
	}
}
