// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/pty"
	"parley.dev/parley/test/modelserver"
)

func TestUserConversesWithChatInTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "story"}, Reply: words(2000, 30*time.Millisecond)},
		{Reply: say("Hello", ", who are you?")},
	}})
	w.newChat("c", "Hi.")
	w.ready("c", 2)
	person, program := pty.Open(t)
	seen := &growing{}
	go func() { _, _ = io.Copy(seen, person) }() // It ends with the terminal.
	talk := w.plugin("send", "c")
	talk.Env = append(talk.Env, "NO_COLOR=1", "TERM=xterm")
	talk.Stdin, talk.Stdout, talk.Stderr = program, program, program
	check.OK(t, talk.Start())
	types := func(keys string) {
		if _, err := person.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}
	sees := func(words string) {
		w.eventually("the terminal shows "+words, func() bool { return strings.Contains(seen.String(), words) })
	}
	sees("leaves]\r\n▎> ")
	types("Tell me a story.\r")
	sees("worda wordb wordc")
	types("And then?")
	sees("\r\n▎> And then?")
	types("\x03")
	sees("▎[interrupting; ctrl-C again leaves]\r\n")
	sees("▎[interrupted]\r\n")
	types("\r")
	sees("Hello, who are you?\r\n▎> ")
	types("\x04")
	if err := talk.Wait(); err != nil {
		t.Errorf("it ends with %v:\n%s", err, seen.String())
	}
	w.ready("c", 6)
	if history := w.history("c"); history[4].Spec.Content != "And then?" {
		t.Errorf("sent was %q", history[4].Spec.Content)
	}
}
