// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"slices"
	"sync/atomic"
	"testing"

	"parley.dev/parley/test/kit/faultclient"
)

func TestEveryScenarioEndsTheSameWhateverGoesWrong(t *testing.T) {
	for i := range scenarios {
		s := &scenarios[i]
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			undisturbed := check(t, s, nil, none)
			if undisturbed == nil {
				return
			}
			for _, d := range weathers {
				if d.once && !s.everyWrite {
					continue
				}
				t.Run(d.name, func(t *testing.T) {
					t.Parallel()
					check(t, s, undisturbed, d)
				})
			}
			everyWrite(t, s, undisturbed)
		})
	}
}

// everyWrite runs the scenario for each of the manager's writes and all that can go wrong with it.
func everyWrite(t *testing.T, s *scenario, undisturbed *outcome) {
	t.Helper()
	var runs, struck atomic.Int32
	for i, w := range disturbed(s, undisturbed) {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			for _, m := range mishaps {
				if !m.happensTo(w, s.everyWrite || i == 0) {
					continue
				}
				t.Run(m.name, func(t *testing.T) {
					t.Parallel()
					out := check(t, s, undisturbed, m.at(w))
					if out == nil {
						return
					}
					runs.Add(1)
					if out.struck {
						struck.Add(1)
					}
				})
			}
		})
	}
	// A write can be left out when another one has overtaken it. If that is the rule, the test tests nothing.
	t.Cleanup(func() {
		if !t.Failed() && 2*struck.Load() < runs.Load() {
			t.Errorf("only %d of %d runs came to the write that was to go wrong", struck.Load(), runs.Load())
		}
	})
}

// disturbed are the writes that go wrong in one of the scenario's runs.
func disturbed(s *scenario, undisturbed *outcome) []faultclient.Write {
	return slices.DeleteFunc(slices.Clone(undisturbed.writes[undisturbed.common:]), func(w faultclient.Write) bool {
		return !s.everyWrite && !ofConversation(w)
	})
}

// check runs the scenario and compares how it ended with how it ended when nothing went wrong.
func check(t *testing.T, s *scenario, undisturbed *outcome, d disturbance) *outcome {
	t.Helper()
	out, err := run(t.Context(), s, d)
	if err != nil {
		t.Fatalf("the run could not be made: %v", err)
	}
	for _, b := range out.broken {
		t.Error(b)
	}
	switch {
	case undisturbed == nil:
	case out.state != undisturbed.state:
		t.Errorf("the end differs.\nwithout the fault:\n%s\nwith it:\n%s", undisturbed.state, out.state)
	case out.attempts != undisturbed.attempts && !d.wasteful:
		t.Errorf("%d attempts were made, and %d are enough", out.attempts, undisturbed.attempts)
	}
	if t.Failed() {
		t.Logf("the end:\n%s\nwritten by the first manager:\n%s\nto run it again: -run '^%s$'", out.state,
			written(out.writes), t.Name())
		return nil
	}
	return out
}

func written(writes []faultclient.Write) string {
	text := ""
	for _, w := range writes {
		text += "  " + w.String() + "\n"
	}
	return text
}
