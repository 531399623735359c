// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"charm.land/fantasy"
)

// shouting writes every a as A.
type shouting struct{ lines []string }

func (s *shouting) Line(line []byte) []byte {
	s.lines = append(s.lines, string(line))
	return []byte(strings.ReplaceAll(string(line), "a", "A"))
}

func (*shouting) Part(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
	return yield(part)
}

func TestABodyIsReadLineByLineHoweverItComes(t *testing.T) {
	reset := errors.New("reset")
	for name, c := range map[string]struct {
		body, want string
		end, err   error
	}{
		"whole events":            {"data: {\"a\":1}\n\ndata: [DONE]\n\n", "dAtA: {\"A\":1}\n\ndAtA: [DONE]\n\n", nil, nil},
		"no line feed at the end": {"data: {}\n\ndata: {\"a\":2}", "dAtA: {}\n\ndAtA: {\"A\":2}", nil, nil},
		"the end within an event": {"data: {}\n\ndata: {\"a\":", "dAtA: {}\n\n", nil, io.ErrUnexpectedEOF},
		"the end within a name":   {"data: {}\n\nda", "dAtA: {}\n\n", nil, io.ErrUnexpectedEOF},
		"a reset within an event": {"data: {}\n\ndata: {\"a\":2}", "dAtA: {}\n\n", reset, reset},
		"no events":               {"{\"a\":\n2}", "{\"A\":\n2}", nil, nil},
		"nothing":                 {"", "", nil, nil},
	} {
		for reader, read := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
			"error with data": iotest.DataErrReader,
		} {
			t.Run(name+", "+reader, func(t *testing.T) {
				body := io.Reader(strings.NewReader(c.body))
				if c.end != nil {
					body = io.MultiReader(body, iotest.ErrReader(c.end))
				}
				lines := &lineBody{ReadCloser: io.NopCloser(read(body)), interceptor: &shouting{}}
				got, err := io.ReadAll(iotest.HalfReader(lines))
				if string(got) != c.want || !errors.Is(err, c.err) {
					t.Errorf("got %q, %v", got, err)
				}
			})
		}
	}
}

func TestALineThatIsTooLongIsNotIntercepted(t *testing.T) {
	long, own := "data: "+strings.Repeat("a", maxLineBytes+chunkSize), &shouting{}
	got, err := io.ReadAll(&lineBody{ReadCloser: io.NopCloser(strings.NewReader(long + "\ndata: a\n")), interceptor: own})
	if err != nil || string(got) != long+"\ndAtA: A\n" || len(own.lines) != 1 {
		t.Errorf("%d bytes, %d lines, %v", len(got), len(own.lines), err)
	}
}
