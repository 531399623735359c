// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import "testing"

// count is how many listen for an object.
func (l *listeners) count(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.of[key])
}

func TestListenersAreNotifiedOnlyOfTheirObject(t *testing.T) {
	var l listeners
	one, stop := l.listen("ns/one")
	two, stopTwo := l.listen("ns/two")
	for range 3 {
		l.notify("ns/one")
	}
	if len(one) != 1 || len(two) != 0 {
		t.Errorf("told were %d and %d times", len(one), len(two))
	}
	stop()
	stopTwo()
	if l.notify("ns/two"); len(two) != 0 || len(l.of) != 0 {
		t.Errorf("%d are left", len(l.of))
	}
}
