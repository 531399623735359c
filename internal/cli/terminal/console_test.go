// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/pty"
)

// desk is a console whose keys a test presses.
type desk struct {
	*Console
	t     *testing.T
	typed *io.PipeWriter
	seen  pty.Output
	lines chan string
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, lines: make(chan string, 1)}
	var typed *io.PipeReader
	typed, d.typed = io.Pipe()
	d.Console = NewConsole(&d.seen, func() (int, int, error) { return 80, 24, nil })
	go d.Keys.Listen(typed, func() {}, func() {})
	go func() {
		for {
			line, err := d.Line()
			if err != nil {
				d.lines <- "error: " + err.Error()
				return
			}
			d.lines <- line
		}
	}()
	t.Cleanup(func() { _ = d.typed.Close() })
	d.sees(Prompt)
	return d
}

func (d *desk) press(keys string) {
	d.t.Helper()
	if _, err := io.WriteString(d.typed, keys); err != nil {
		d.t.Fatal(err)
	}
}

// sees waits until the words were shown, and forgets them.
func (d *desk) sees(words string) {
	d.t.Helper()
	d.seen.Sees(d.t, words)
}

func TestTypingHoldsBackTheReply(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	fmt.Fprint(d, "Net")
	fmt.Fprint(d, "works")
	if got := d.seen.String(); !strings.HasSuffix(got, "Networks") {
		t.Errorf("it shows %q", got)
	}
	d.press("wh")
	d.sees("Networks\r\n" + Prompt + "wh")
	fmt.Fprint(d, " are a ")
	fmt.Fprint(d, "long\nstory")
	d.sees(" are a long\r\n" + Prompt + "wh")
	d.press("y\r")
	if line := <-d.lines; line != "why" {
		t.Errorf("typed is %q", line)
	}
	d.sees("story")
	fmt.Fprint(d, ".\n")
	d.ShowPrompt()
	d.sees(".\r\n" + Prompt)
}

func TestPromptPrecedesTypedKeysAtEndOfReply(t *testing.T) {
	t.Parallel()
	for range 200 {
		d := newDesk(t)
		go func() {
			fmt.Fprint(d, "Networks\n")
			d.ShowPrompt()
		}()
		d.press("why\r")
		if line := <-d.lines; line != "why" {
			t.Fatalf("typed is %q", line)
		}
		if strings.Contains(d.seen.String(), "\x1b[3C") { // The editor would go to where a prompt ends.
			t.Fatalf("the line stands where no prompt is: %q", d.seen.String())
		}
		_ = d.typed.Close()
	}
}

func TestUnfinishedLineReturnsAfterReply(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.press("wh")
	d.sees("wh")
	fmt.Fprint(d, "held until it ends")
	d.ShowPrompt()
	d.sees("held until it ends\r\n" + Prompt + "wh")
	d.press("y\r")
	if line := <-d.lines; line != "why" {
		t.Errorf("typed is %q", line)
	}
}

func TestWhatIsRetypedComesBeforeWhatIsTyped(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.Keys.Retype("two\nlines")
	d.sees("lines")
	d.press(" more\r")
	if line := <-d.lines; line != "two\nlines more" {
		t.Errorf("typed is %q", line)
	}
}

func TestATerminalThatIsGoneEndsTheLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.press("lost")
	_ = d.typed.Close()
	if line := <-d.lines; line != "error: "+errHungUp.Error() {
		t.Errorf("typed is %q", line)
	}
}

func TestNothingThatIsPastedIsActedOn(t *testing.T) {
	said := "a\x1b[2J\x1b]0;x\a\tb\u009b2J\r\né語\x7f"
	typed := "\x1b[A" + pasteBegins + said + pasteEnds + "c\x1b[B" + pasteBegins + "d" + pasteEnds
	want := "\x1b[A" + pasteBegins + "a[2J]0;x\tb2J\r\né語" + pasteEnds + "c\x1b[B" + pasteBegins + "d" + pasteEnds
	for size := 1; size <= len(typed); size++ {
		var p paste
		var got strings.Builder
		for rest := typed; rest != ""; {
			n := min(size, len(rest))
			got.Write(p.pass([]byte(rest[:n])))
			rest = rest[n:]
		}
		check.Equal(t, size, want, got.String())
	}
}
