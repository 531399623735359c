// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// input is standard input, whose reads end with a context.
type input struct {
	io.Reader

	ctx context.Context //nolint:containedctx // io.Reader has no other.
}

// NewInput returns a reader of in whose reads fail once ctx is done. What comes for such a read later is lost.
func NewInput(ctx context.Context, in io.Reader) io.Reader { return &input{in, ctx} }

// Read implements io.Reader.
func (i *input) Read(p []byte) (int, error) {
	content, err := until(i.ctx, func() ([]byte, error) {
		own := make([]byte, len(p))
		n, err := i.Reader.Read(own)
		return own[:n], err
	})
	return copy(p, content), err
}

// until returns what read returns, unless ctx is done before. The program then ends, and read with it.
func until(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type result struct {
		content []byte
		err     error
	}
	done := make(chan result, 1)
	go func() {
		content, err := read()
		done <- result{content, err}
	}()
	select {
	case r := <-done:
		return r.content, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Agreed asks a question, and reports whether the answer is y or yes.
func Agreed(in io.Reader, out io.Writer, format string, args ...any) (bool, error) {
	fmt.Fprintf(out, format+" [y/N] ", args...)
	line, err := bufio.NewReader(io.LimitReader(in, 1<<10)).ReadString('\n')
	if err != nil {
		fmt.Fprintln(out)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return err == nil && (answer == "y" || answer == "yes"), nil
}

// ReadHidden reads a line from a terminal, which does not show it.
func ReadHidden(ctx context.Context, in *os.File) ([]byte, error) {
	fd := int(in.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, fmt.Errorf("reading the state of the terminal: %w", err)
	}
	line, err := until(ctx, func() ([]byte, error) { return term.ReadPassword(fd) })
	if ctx.Err() != nil {
		err = errors.Join(err, term.Restore(fd, before))
	}
	return line, err
}

// OnTerminal reports whether the stream is a terminal.
func OnTerminal(stream any) bool {
	file, ok := FileOf(stream)
	return ok && term.IsTerminal(int(file.Fd()))
}

// FileOf returns the file of a stream.
func FileOf(stream any) (*os.File, bool) {
	switch wrapped := stream.(type) {
	case *Screen:
		stream = wrapped.To
	case *input:
		stream = wrapped.Reader
	}
	file, ok := stream.(*os.File)
	return file, ok
}
