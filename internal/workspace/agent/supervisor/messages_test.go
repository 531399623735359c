// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
)

func TestAPlanIsWhatItWas(t *testing.T) {
	for name, want := range map[string]command{
		"a command":       {path: "/bin/sh", dir: "/workspace", env: []string{"A=b", "C="}, argv: []string{"sh", "-c", "x y"}},
		"empty arguments": {path: "./a", dir: "", env: []string{"A=b"}, argv: []string{"", "", "x", ""}},
		"no environment":  {path: "\xff", dir: "/", env: []string{}, argv: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := Encode([]byte(want.path), []byte(want.dir), words(want.env), words(want.argv))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := decode(plan); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v: %v", got, err)
			}
		})
	}
}

func words(texts []string) (words [][]byte) {
	for _, text := range texts {
		words = append(words, []byte(text))
	}
	return words
}

func TestWhatIsNoPlanIsRefused(t *testing.T) {
	sh, nul := []byte("sh"), []byte("a\x00b")
	for name, c := range map[string]struct {
		path      []byte
		env, argv [][]byte
	}{
		"no path":                     {nil, nil, [][]byte{sh}},
		"no arguments":                {sh, nil, nil},
		"NUL in the path":             {nul, nil, [][]byte{sh}},
		"NUL in an argument":          {sh, nil, [][]byte{sh, nul}},
		"NUL in the environment":      {sh, [][]byte{nul}, [][]byte{sh}},
		"NUL alone as an argument":    {sh, nil, [][]byte{sh, {0}}},
		"NUL alone in an environment": {sh, [][]byte{{0}}, [][]byte{sh}},
	} {
		if _, err := Encode(c.path, nil, c.env, c.argv); err == nil {
			t.Errorf("%s was encoded", name)
		}
	}
	for _, raw := range []string{"", "a", "a\x00", "a\x00b\x00", "a\x00b\x00\x00", "\x00b\x00\x00c\x00", "a\x00b\x00c\x00"} {
		if got, err := decode([]byte(raw)); err == nil {
			t.Errorf("%q was decoded as %+v", raw, got)
		}
	}
}

func TestAReportIsWhatItWas(t *testing.T) {
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
		again, err := Encode([]byte(got.path), []byte(got.dir), words(got.env), words(got.argv))
		if err != nil {
			t.Fatal(err)
		}
		// What follows on the last NUL is no word.
		if end := bytes.LastIndexByte(raw, 0); !slices.Equal(again, raw[:end+1]) {
			t.Fatalf("%q became %q", raw, again)
		}
	})
}
