// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"parley.dev/parley/test/kit/check"
)

func TestARefusalIsForgottenAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRefusals()
		r.add([]string{"a"})
		<-time.After(refusedFor / 2)
		r.add([]string{"b"})
		check.Equal(t, "a, b, c are remembered", []any{true, true, false}, []any{r.has("a"), r.has("b"), r.has("c")})
		<-time.After(refusedFor/2 + time.Second)
		check.Equal(t, "a, b are remembered later", []any{false, true}, []any{r.has("a"), r.has("b")})
		for i := range 3 * maxRefusals {
			r.add([]string{fmt.Sprint(i)})
		}
		if n := len(r.urls.Keys()); n > maxRefusals {
			t.Fatalf("%d are remembered", n)
		}
	})
}
