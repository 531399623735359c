// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// speak opens a session by hand.
func (a *agent) speak(key string) (net.Conn, *bufio.Reader, *http.Response) {
	a.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.address, "http://"))
	check.OK(a.t, err)
	a.t.Cleanup(func() { conn.Close() })
	r, err := http.NewRequest(http.MethodPost, a.address+"/v1/sessions/"+key, strings.NewReader(`{"argv":["cat"]}`))
	check.OK(a.t, err)
	r.Header = http.Header{"Authorization": {"Bearer " + a.token}, protocol.HeaderChat: {a.chat},
		"Connection": {"Upgrade"}, "Upgrade": {protocol.Session}}
	check.OK(a.t, r.Write(conn))
	read := bufio.NewReader(conn)
	answer, err := http.ReadResponse(read, r)
	check.OK(a.t, err)
	return conn, read, answer
}

func TestTheConnectionOfASessionIsTheCommands(t *testing.T) {
	a := newAgent(t)
	conn, read, answer := a.speak("key")
	if answer.StatusCode != http.StatusSwitchingProtocols || answer.Header.Get(protocol.HeaderProcess) != echo.ID {
		t.Fatalf("it answers %d with %v", answer.StatusCode, answer.Header)
	}
	_, err := io.WriteString(conn, "hello\n")
	check.OK(t, err)
	if said, err := read.ReadString('\n'); err != nil || said != "hello\n" {
		t.Errorf("it says %q: %v", said, err)
	}
	a.stop() // Whoever is spoken to is let go.
	if rest, err := io.ReadAll(read); err != nil || len(rest) > 0 {
		t.Errorf("it says %q: %v", rest, err)
	}
}

func TestASessionNeedsAnUpgrade(t *testing.T) {
	a := newAgent(t)
	a.expect(a.post("/v1/sessions/key", protocol.StartRequest{Argv: []string{"cat"}}), http.StatusBadRequest,
		protocol.BadRequest)
	if len(a.started) > 0 {
		t.Errorf("started are %+v", a.started)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	a := newAgent(t)
	var last net.Conn
	for range maxSessions {
		conn, _, answer := a.speak("key")
		if last = conn; answer.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("it answers %d", answer.StatusCode)
		}
	}
	if _, _, answer := a.speak("key"); answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("it answers %d", answer.StatusCode)
	}
	a.expect(a.get("/v1/info"), http.StatusOK, "")
	last.Close()
	waiting.Until(t, time.Minute, "there is room again", func() bool {
		conn, _, answer := a.speak("key")
		conn.Close()
		return answer.StatusCode == http.StatusSwitchingProtocols
	})
}
