// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"parley.dev/parley/test/kit/check"
)

func TestPlanSurvivesEncoding(t *testing.T) {
	for name, want := range map[string]command{
		"a command":       {path: "/bin/sh", dir: "/", env: []string{"A=b", "C="}, argv: []string{"sh", "-c", "x y"}},
		"empty arguments": {path: "./a", dir: "", env: []string{"A=b"}, argv: []string{"", "", "x", ""}},
		"no environment":  {path: "\xff", dir: "/", env: []string{}, argv: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := Encode(want.path, want.dir, want.env, want.argv)
			check.OK(t, err)
			if got, err := decode(plan); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v: %v", got, err)
			}
		})
	}
}

func TestInvalidPlanIsRefused(t *testing.T) {
	for name, c := range map[string]command{
		"no path":                     {path: "", argv: []string{"sh"}},
		"no arguments":                {path: "sh"},
		"NUL in the path":             {path: "a\x00b", argv: []string{"sh"}},
		"NUL in an argument":          {path: "sh", argv: []string{"sh", "a\x00b"}},
		"NUL in the environment":      {path: "sh", env: []string{"a\x00b"}, argv: []string{"sh"}},
		"NUL alone as an argument":    {path: "sh", argv: []string{"sh", "\x00"}},
		"NUL alone in an environment": {path: "sh", env: []string{"\x00"}, argv: []string{"sh"}},
	} {
		if _, err := Encode(c.path, c.dir, c.env, c.argv); err == nil {
			t.Errorf("%s was encoded", name)
		}
	}
	for _, raw := range []string{"", "a", "a\x00", "a\x00b\x00", "a\x00b\x00\x00", "\x00b\x00\x00c\x00", "a\x00b\x00c\x00"} {
		if got, err := decode([]byte(raw)); err == nil {
			t.Errorf("%q was decoded as %+v", raw, got)
		}
	}
}

func TestReportSurvivesEncoding(t *testing.T) {
	for _, want := range []Report{
		{Supervisor: 4194304, Kind: Started, Value: 4194303}, {Supervisor: 2, Kind: Failed, Value: 11},
		{Supervisor: 3, Kind: Over, Value: 0xff7f},
	} {
		if got := ParseReport(want.encode()); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("/bin/sh\x00/\x00A=b\x00\x00sh\x00-c\x00\x00"))
	f.Add([]byte("a\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := decode(raw)
		if err != nil {
			return
		}
		again, err := Encode(got.path, got.dir, got.env, got.argv)
		check.OK(t, err)
		// What follows on the last NUL is no word.
		if end := bytes.LastIndexByte(raw, 0); !slices.Equal(again, raw[:end+1]) {
			t.Fatalf("%q became %q", raw, again)
		}
	})
}
