// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

func TestAnOutageIsToldOnceIfItLasts(t *testing.T) {
	told := 0
	o := outage{tell: func(error) { told++ }}
	begun, refused := time.Now(), errors.New("connection refused")
	for _, c := range []struct {
		after time.Duration
		over  bool
		want  int
	}{{0, false, 0}, {patience - 1, false, 0}, {patience, false, 1}, {time.Hour, false, 1}, {time.Hour, true, 1},
		{time.Hour, false, 1}, {time.Hour + patience - 1, false, 1}, {time.Hour + patience, false, 2}} {
		if c.over {
			o.over()
		} else {
			o.lost(begun.Add(c.after), refused)
		}
		if told != c.want {
			t.Errorf("after %s it was told %d times, want %d", c.after, told, c.want)
		}
	}
}

func TestAGatewayOutOfReachIsTold(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	for _, args := range []string{"tail triage", "send triage hello", "tail triage -o json"} {
		args = "--gateway http://" + closed.Addr().String() + " " + args
		c := p.start("token", "", strings.Fields(args)...)
		for range poll(t, "the outage is told") {
			if strings.HasPrefix(c.errOut.String(), "▎[the gateway is out of reach") {
				break
			}
		}
		if got := c.errOut.String(); !strings.Contains(got, "connection refused]\n") || c.out.String() != "" {
			t.Errorf("%s: told %q, shown %q", args, got, c.out.String())
		}
		c.stop()
		_ = c.wait()
	}
}
