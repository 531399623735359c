// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import "testing"

func TestAnAmpersandAtTheEndMeansBackground(t *testing.T) {
	for command, want := range map[string]string{
		"sleep 1 &":                     "sleep 1",
		"sleep 1&":                      "sleep 1",
		"sleep 1 & \n\t":                "sleep 1",
		"a && b &":                      "a && b",
		"a & b &":                       "a & b",
		"(cd x; make) &":                "(cd x; make)",
		`echo "a & b" &`:                `echo "a & b"`,
		`echo 'it'\''s' &`:              `echo 'it'\''s'`,
		"echo `date` &":                 "echo `date`",
		"echo a#b &":                    "echo a#b",
		"echo # a 'comment\nsleep 1 &":  "echo # a 'comment\nsleep 1",
		`echo "\"" &`:                   `echo "\""`,
		"# it's a comment\nserver -x &": "# it's a comment\nserver -x",
		"&":                             "",
	} {
		if got, background := inBackground(command); !background || got != want {
			t.Errorf("%q: got %q, %t", command, got, background)
		}
	}
	for _, command := range []string{
		"", "sleep 1", "a && b", "a &&", "sleep 1 & wait", `echo "a &`, `echo 'a &`, "echo `a &", `echo "a &"`,
		`echo 'a' '&'`, `echo a \&`, "echo a # b &", "#&", "cat <&", "echo >&", "a |&", "case x in x) ;;&", "sleep 1 &;",
	} {
		if got, background := inBackground(command); background || got != command {
			t.Errorf("%q: got %q, %t", command, got, background)
		}
	}
}
