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
var knownFailures = []failure{
	{"an attempt whose pod is gone at once is made again", "", podUnseen},
	{"an attempt whose pod is gone is made again", "two managers work at once", leftover},
	{"an attempt whose pod is gone is made again", "two managers work at once and one lags", leftover},
	{"a new chat that comes at once begins afresh", "", oldMessages},
	{"a new chat by the name of a deleted one begins afresh", "two managers work at once and one lags", editUnseen},
	{"a deleted message takes what follows along", "is applied and the process dies", gap},
	{"a deleted message takes what follows along", "never gets out and the process dies", gap},
}

const (
	podUnseen = "a pod that goes before the cache shows that the chat has it, or whose event comes before the ledger knows that " +
		"it was created, wakes the chat in vain or not at all: the attempt is never given up"
	leftover = "a completed result whose attempt is given up while the result comes is looked at once, before that, and never " +
		"again: it stays"
	oldMessages = "the messages of a chat that was deleted are not looked at again when a new chat of its name is there already, " +
		"or when the cache shows only later that they belonged to the old one: the prompt stands in the new chat's way for ever"
	editUnseen = "what the cache says of a message that was replaced by one of the same name is taken for an edit of the new one: " +
		"a committed answer is cut off and made again"
	gap = "a manager that starts before the history was cut at a deleted message takes the reply before that gap for one that " +
		"belongs to no history, because its walk from the head ends there, and deletes it: it is made and paid for again"
)

// known says why the case fails; empty if it does not.
func known(scenario, disturbance string) string {
	for _, f := range knownFailures {
		if f.scenario == scenario && (f.disturbance == "" || f.disturbance == disturbance) {
			return f.why
		}
	}
	return ""
}
