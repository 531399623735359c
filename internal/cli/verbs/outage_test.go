// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"net"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
)

func TestAGatewayOutOfReachIsTold(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	_ = closed.Close()
	for _, args := range []string{"tail triage", "send triage hello", "tail triage -o json"} {
		args = "--gateway http://" + closed.Addr().String() + " " + args
		c := p.run(strings.Fields(args)...)
		c.waitNote("▎[the gateway is out of reach")
		if got := c.errOut.String(); !strings.Contains(got, "connection refused]\n") || c.out.String() != "" {
			t.Errorf("%s: told %q, shown %q", args, got, c.out.String())
		}
		c.stop()
		_ = c.wait()
	}
}
