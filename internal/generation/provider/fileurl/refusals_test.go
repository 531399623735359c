// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestARefusalIsForgottenAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRefusals()
		r.add([]string{"a"})
		<-time.After(refusedFor / 2)
		r.add([]string{"b"})
		if !r.has("a") || !r.has("b") || r.has("c") {
			t.Error("a refusal is not remembered")
		}
		<-time.After(refusedFor/2 + time.Second)
		if r.has("a") || !r.has("b") {
			t.Error("a refusal is remembered for too long, or too short")
		}
		for i := range 3 * maxRefusals {
			r.add([]string{fmt.Sprint(i)})
		}
		if n := len(r.urls.Keys()); n > maxRefusals {
			t.Fatalf("%d are remembered", n)
		}
	})
}
