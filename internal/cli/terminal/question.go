// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Agreed asks a question that is answered with y, and otherwise with no.
func Agreed(in io.Reader, out io.Writer, format string, args ...any) bool {
	fmt.Fprintf(out, format+" [y/N] ", args...)
	line, err := bufio.NewReader(io.LimitReader(in, 1<<10)).ReadString('\n')
	if err != nil {
		return false
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// OnTerminal reports whether a person types or reads there.
func OnTerminal(stream any) bool {
	file, ok := FileOf(stream)
	return ok && term.IsTerminal(int(file.Fd()))
}

// FileOf is the file that is read, or shown on.
func FileOf(stream any) (*os.File, bool) {
	if shown, ok := stream.(*Screen); ok {
		stream = shown.To
	}
	file, ok := stream.(*os.File)
	return file, ok
}
