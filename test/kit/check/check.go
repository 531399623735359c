// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check compares in tests what there is with what there should be, and shows the difference alone.
package check

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// OK ends the test if there is an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Equal fails the test if got differs from want, and shows where; what names the value. An empty list is as good as
// none, and of values that a list of any type holds, the kind counts and not the type: 1 is int32(1), but not "1".
func Equal[T any](t testing.TB, what any, want, got T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, append(options, cmpopts.EquateEmpty(), sameKind)...); diff != "" {
		t.Errorf("%v (-want +got):\n%s", what, diff)
	}
}

// sameKind compares numbers and texts of different types.
var sameKind = cmp.FilterValues(func(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.IsValid() && y.IsValid() && x.Type() != y.Type() && (isNumber(x) && isNumber(y) || isText(x) && isText(y))
}, cmp.Comparer(func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }))

func isNumber(v reflect.Value) bool { return v.CanInt() || v.CanFloat() }

func isText(v reflect.Value) bool { return v.Kind() == reflect.String }

// Contains fails the test for each of the pieces that is not in the text.
func Contains(t testing.TB, text string, pieces ...string) {
	t.Helper()
	for _, piece := range pieces {
		if !strings.Contains(text, piece) {
			t.Errorf("no %q in %.3000s", piece, text)
		}
	}
}

// Lacks fails the test for each of the pieces that is in the text.
func Lacks(t testing.TB, text string, pieces ...string) {
	t.Helper()
	for _, piece := range pieces {
		if strings.Contains(text, piece) {
			t.Errorf("%q is in %.3000s", piece, text)
		}
	}
}

// InOrder fails the test unless the pieces are in the text, one behind the other.
func InOrder(t testing.TB, text string, pieces ...string) {
	t.Helper()
	rest := text
	for _, piece := range pieces {
		_, after, found := strings.Cut(rest, piece)
		if !found {
			t.Errorf("%q is missing or out of order in %.3000s", piece, text)
			return
		}
		rest = after
	}
}
