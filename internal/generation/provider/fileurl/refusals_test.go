// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl

import (
	"fmt"
	"testing"
	"time"
)

func TestARefusalIsForgottenAfterAWhile(t *testing.T) {
	now := time.Unix(0, 0)
	r := &refusals{now: func() time.Time { return now }}
	r.add([]string{"a"})
	now = now.Add(refusedFor / 2)
	r.add([]string{"b"})
	if !r.has("a") || !r.has("b") || r.has("c") {
		t.Error("a refusal is not remembered")
	}
	now = now.Add(refusedFor / 2)
	if r.has("a") || !r.has("b") {
		t.Error("a refusal is remembered for too long, or too short")
	}
	for i := range 3 * maxRefusals {
		r.add([]string{fmt.Sprint(i)})
		if len(r.until) > maxRefusals {
			t.Fatalf("%d are remembered", len(r.until))
		}
	}
}
