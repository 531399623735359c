// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"charm.land/fantasy"
)

// shouting writes every a as A.
type shouting struct{}

func (shouting) Line(line []byte) []byte {
	return []byte(strings.ReplaceAll(string(line), "a", "A"))
}

func (shouting) Events(document []byte) [][]byte { return [][]byte{document} }

func (shouting) Part(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
	return yield(part)
}

func TestEventsAreReadAsTheStandardSays(t *testing.T) {
	reset := errors.New("reset")
	for name, c := range map[string]struct {
		body, want string
		end, err   error
	}{
		"whole events":            {"data: {\"a\":1}\n\ndata: [DONE]\n\n", "dAtA: {\"A\":1}\n\ndAtA: [DONE]\n\n", nil, nil},
		"a name":                  {"event: message\ndata: {}\n\n", "event: message\ndAtA: {}\n\n", nil, nil},
		"no line feed at the end": {"data: {}\n\ndata: {\"a\":2}", "dAtA: {}\n\ndAtA: {\"A\":2}\n\n", nil, nil},
		"the end within an event": {"data: {}\n\ndata: {\"a\":", "dAtA: {}\n\n", nil, io.ErrUnexpectedEOF},
		"a reset within an event": {"data: {}\n\ndata: {\"a\":2}", "dAtA: {}\n\n", reset, reset},
		"no data":                 {"data:\n\n" + "data: {}\n\nevent: ping\n\n", "dAtA: {}\n\n", nil, nil},
		"comments":                {": alive\n\ndata: {}\n\n", "dAtA: {}\n\n", nil, nil},
		"a byte order mark":       {"\ufeffdata: {\"a\":1}\n\n", "dAtA: {\"A\":1}\n\n", nil, nil},
		"CR alone":                {"data: {\"a\":1}\r\rdata: {}\r\r", "dAtA: {\"A\":1}\n\ndAtA: {}\n\n", nil, nil},
		"CR and LF":               {"event: x\r\ndata: {}\r\n\r\n", "event: x\ndAtA: {}\n\n", nil, nil},
		"two lines of data":       {"data: {\"a\":\ndata: 1}\n\n", "dAtA: {\"A\": 1}\n\n", nil, nil},
		"no JSON":                 {"data: {}\n\ndata: oops\n\ndata: {}\n\n", "dAtA: {}\n\n", nil, io.ErrUnexpectedEOF},
		"a document behind":       {"data: {}\n\n{\n \"a\":\n1}", "dAtA: {}\n\ndAtA: {  \"A\": 1}\n\n", nil, nil},
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
				events := newEventBody(io.NopCloser(read(body)), shouting{})
				got, err := io.ReadAll(iotest.HalfReader(events))
				if string(got) != c.want || !errors.Is(err, c.err) {
					t.Errorf("got %q, %v", got, err)
				}
				if err := events.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestDocumentsAreBounded(t *testing.T) {
	endless := func(begin string) io.ReadCloser {
		return io.NopCloser(io.MultiReader(strings.NewReader(begin), &blankLines{left: 2 * maxEventBytes}))
	}
	n, err := io.Copy(io.Discard, newEventBody(endless("data: {}\n\n{}"), shouting{}))
	if err == nil || n > maxEventBytes {
		t.Errorf("%d bytes behind events are read: %v", n, err)
	}
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: endless("{}")}
	if err := stream(response, &holder{Interceptor: shouting{}}); err == nil {
		t.Error("a document without end is read")
	}
}

// blankLines is as many bytes of empty lines.
type blankLines struct{ left int }

func (b *blankLines) Read(p []byte) (int, error) {
	n := min(len(p), b.left)
	if n == 0 {
		return 0, io.EOF
	}
	for i := range n {
		p[i] = '\n'
	}
	b.left -= n
	return n, nil
}

func TestSplitSurrogatesAreJoined(t *testing.T) {
	for name, c := range map[string]struct{ first, second, want string }{
		"a pair":             {`{"c":"a\ud83d"}`, `{"c":"\ude00b"}`, "a😀b"},
		"alone":              {`{"c":"\uD83D"}`, `{"c":"\uDE00"}`, "😀"},
		"an escaped one":     {`{"c":"\\ud83d"}`, `{"c":"b"}`, `\ud83db`},
		"a whole one before": {`{"c":"\ud83d\ude00"}`, `{"c":"b"}`, "😀b"},
	} {
		t.Run(name, func(t *testing.T) {
			var s surrogates
			text := ""
			for _, event := range []string{c.first, c.second} {
				var got struct{ C string }
				if err := json.Unmarshal(s.join([]byte(event)), &got); err != nil {
					t.Fatal(err)
				}
				text += got.C
			}
			if text != c.want {
				t.Errorf("got %q", text)
			}
		})
	}
}

func FuzzEventsAreJSON(f *testing.F) {
	for _, seed := range []string{"data:\n\n", "data: oops\n\n", "\ufeffdata: {}\r\r", "data: {\"a\":\ndata: 1}\n\n",
		"event: x\ndata: [DONE]", "data: {\"c\":\"\\ud83d\"}\n\ndata: {\"c\":\"\\ude00\"}\n\n", "{\"error\":\"x\"}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		got, _ := io.ReadAll(newEventBody(io.NopCloser(strings.NewReader(body)), unchanged{}))
		for event := range strings.SplitSeq(string(got), "\n\n") {
			_, data, ok := strings.Cut("\n"+event, "\ndata: ")
			if ok && data != "[DONE]" && !json.Valid([]byte(data)) {
				t.Errorf("%q becomes %q", body, data)
			}
		}
	})
}

// unchanged changes nothing.
type unchanged struct{ shouting }

func (unchanged) Line(line []byte) []byte { return line }
