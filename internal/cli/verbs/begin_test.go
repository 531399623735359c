// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// chats returns how many chats there are.
func (p *person) chats() int {
	p.t.Helper()
	var all v1beta1.ChatList
	check.OK(p.t, p.c.List(p.t.Context(), &all, client.InNamespace(p.namespace)))
	return len(all.Items)
}

func TestNoChatIsCreatedWithoutGateway(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "why?")
	for _, args := range []string{"new a why?", "fork triage a why?", "import - a --prompt why?", "import - a --answer"} {
		p.start("token", repliedLast, strings.Fields(args)...).exits(exitForbidden, "looking for the gateway")
		check.Equal(t, "chats after "+args, 1, p.chats())
	}
}

func TestChatWithoutFirstMessageIsDeleted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	large := filepath.Join(t.TempDir(), "large.png")
	check.OK(t, os.WriteFile(large, make([]byte, 1<<20), 0o600))
	for _, args := range []string{
		"new a why? --no-follow", "new a why?", "run why?", "import - a --prompt why? --no-follow",
		"import - a --prompt why?",
	} {
		// The file needs a gateway, and none has the port.
		c := p.start("certificate", repliedLast, append(strings.Fields(args), "--file", large, "--gateway",
			"http://127.0.0.1:1", "--timeout", "2s")...)
		if err := c.wait(); err == nil {
			t.Errorf("%s succeeds", args)
		}
		check.Contains(t, c.errOut.String(), " was deleted, because its first message could not be created]")
		check.Equal(t, "chats after "+args, 1, p.chats())
	}
}

func TestChatOfRefusedStreamIsNamed(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.create(&corev1.ServiceAccount{ObjectMeta: p.meta("stranger")})
	small := filepath.Join(t.TempDir(), "a.log")
	check.OK(t, os.WriteFile(small, []byte("a log"), 0o600))
	begin := func(args ...string) *command {
		return p.start("certificate", "", append([]string{"--gateway", p.gateway, "--service-account", "stranger", "-o", "json",
			"new", "a-", "why?"}, args...)...)
	}
	withFile := begin("--file", small)
	withFile.exits(exitForbidden, "")
	check.Equal(t, "chats", 1, p.chats())
	asked := begin()
	asked.exits(exitForbidden, "")
	check.Contains(t, asked.errOut.String(), "▎[chat.parley.dev/"+p.created("a-").Name+" created]\n")
	check.Equal(t, "shown", "", asked.out.String())
}
