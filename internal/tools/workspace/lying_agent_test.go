// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

// everyCall are calls of all tools, as models make them.
var everyCall = map[string]string{
	"execute":         `{"command":"true","timeout":1}`,
	"process_output":  `{"process_id":"p1","wait_timeout":0}`,
	"process_list":    `{}`,
	"process_signal":  `{"process_id":"p1","signal":"kill"}`,
	"read_file":       `{"path":"a"}`,
	"write_file":      `{"path":"/workspace/a","content":"b"}`,
	"edit_files":      `{"edits":[{"path":"a","old_text":"b","new_text":"c"}]}`,
	"search_files":    `{"pattern":"a"}`,
	"attach_file":     `{"path":"a"}`,
	"start_workspace": `{}`,
	"stop_workspace":  `{}`,
}

// onTerminals are some of the characters that terminals act on.
const onTerminals = "\x1b\x07\u009b\u202e"

// FuzzNoAnswerOfAnAgentBreaksATool has an agent answer whatever it is asked with the same: no tool panics, waits for
// ever, returns more than its model can read, or hands on what it must not.
//
// Security (a hostile workspace): cannot make a generation pod panic, hang, fill up or pass on more than a model can
// read, whatever its agent answers. Also TestNonAgentResponseIsReportedAsSuch,
// TestOutputNotMatchingRequestedRangeIsRejected, TestNumbersOfAProcessAreMadeSense of internal/workspace/client.
func FuzzNoAnswerOfAnAgentBreaksATool(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `[]`, `null`, `{"processes":[null]}`, "\x00\xff", `{"code":"\u001b]0;x\u0007","message":"\u202e"}`,
		`{"id":"p1","state":"Exited","exitCode":0,"command":"\u001b[2J","outputBytes":-1}`,
		`{"id":"p1","state":"Running","outputBytes":9223372036854775807,"outputDropped":9223372036854775807}`,
		`{"id":"../../x","state":"Exited"}`, `{"id":"p1","state":"Lost","note":"` + strings.Repeat("x", 1<<16) + `"}`,
		`{"processes":[{"id":"p1","state":"Running","key":"` + key + `"}]}`,
		`{"id":"p1","state":"Exited","descendants":{"count":9223372036854775807,"first":[{"command":"\u001b` +
			strings.Repeat("x", 1<<16) + `"}]}}`,
		`{"content":"` + strings.Repeat(`\n`, 1<<16) + `","lines":-1,"totalLines":-9,"firstLine":9223372036854775807}`,
		`{"files":[{"path":"` + strings.Repeat("/x", 1<<15) + `","diff":"` + strings.Repeat("+", 1<<16) + `"}]}`,
		`{"files":[` + strings.Repeat(`{"path":"`+strings.Repeat("x", 4096)+`"},`, 50) + `{}]}`,
		`{"matches":[` + strings.Repeat(`{"path":"`+strings.Repeat("x", 4096)+`","line":1},`, 50) + `{"line":-1}]}`,
		`{"path":"../../etc/passwd","size":-1,"created":true}`,
		`{"os":"` + strings.Repeat("\u202e", 1<<12) + `","directory":"/workspace","running":-1}`,
	} {
		for _, status := range []int{200, 404, 409, 503} {
			f.Add(status, "0", "5", []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, status int, from, total string, body []byte) {
		if status < 200 || status > 599 {
			t.Skip("no server can answer so")
		}
		b := newBench(t)
		b.agent.Before = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/output") {
				w.Header().Set(protocol.HeaderOutputFrom, strings.Map(headerCharacter, from))
				w.Header().Set(protocol.HeaderOutputTotal, strings.Map(headerCharacter, total))
			}
			w.WriteHeader(status)
			_, _ = w.Write(body) // The client may have enough.
			return true
		}
		o := b.agent.Options()
		o.Pauses, o.Timeout = []time.Duration{time.Millisecond}, 5*time.Second
		b.use(Options{Workspaces: only{client: client.New(o)}, Now: time.Now})
		for tool, input := range everyCall {
			_, err := b.call(tool, input) // It looks at the results.
			check.Equal(t, tool, "", wrongError(err))
		}
	})
}

// headerCharacter leaves out what no header can have.
func headerCharacter(r rune) rune {
	if r < ' ' || r > '~' {
		return -1
	}
	return r
}

// wrongError is what is wrong with the error of a call; empty: nothing is, or there is none.
func wrongError(err error) string {
	switch {
	case err == nil:
		return ""
	case strings.ContainsAny(err.Error(), onTerminals):
		return fmt.Sprintf("terminals act on the error %q", err)
	case strings.Contains(err.Error(), "127.0.0.1"):
		return fmt.Sprintf("the error tells an address: %v", err)
	case len(err.Error()) > 8<<10:
		return fmt.Sprintf("the error has %d bytes", len(err.Error()))
	}
	return ""
}
