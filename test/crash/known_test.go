// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

// failure is a case that fails because of a defect of the manager.
type failure struct {
	// scenario and disturbance by name; without a disturbance the whole scenario.
	scenario, disturbance string
	// why says what is wrong.
	why string
}

// knownFailures are not run. A defect that is repaired takes its cases out of the list.
var knownFailures []failure

// known says why the case fails; empty if it does not.
func known(scenario, disturbance string) string {
	for _, f := range knownFailures {
		if f.scenario == scenario && (f.disturbance == "" || f.disturbance == disturbance) {
			return f.why
		}
	}
	return ""
}
