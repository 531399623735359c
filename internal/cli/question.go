// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

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

// onTerminal reports whether a person types or reads there.
func onTerminal(stream any) bool {
	file, ok := fileOf(stream)
	return ok && term.IsTerminal(int(file.Fd()))
}

// fileOf is the file that is read, or shown on.
func fileOf(stream any) (*os.File, bool) {
	if shown, ok := stream.(*screen); ok {
		stream = shown.to
	}
	file, ok := stream.(*os.File)
	return file, ok
}
