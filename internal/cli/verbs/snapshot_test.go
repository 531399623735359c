// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"net/http"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// counter counts the requests that it passes on.
type counter struct {
	http.RoundTripper

	requests int
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests++
	return c.RoundTripper.RoundTrip(r)
}

func TestALongChatIsReadInFewRequests(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "one")
	for i := range 3 * cluster.MessagePage {
		p.reply(chattest.Says(fmt.Sprintf("answer %d", i)))
	}
	p.updateStatus(p.chat)
	length := int(p.chat.Status.History.Length)
	config, err := clientcmd.BuildConfigFromFlags("", p.files["token"])
	check.OK(t, err)
	made := &counter{}
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { made.RoundTripper = inner; return made })
	s := p.session()
	if s.Client, err = apiclient.New(config, "kubectl-chat"); err != nil {
		t.Fatal(err)
	}
	for last, most := range map[int]int{0: 6, 1: 3, 2: 4, 20: 6, 1000: 6} {
		made.requests = 0
		read, err := s.Snapshot(t.Context(), "triage", last)
		check.OK(t, err)
		if made.requests > most {
			t.Errorf("the last %d messages took %d requests, want at most %d", last, made.requests, most)
		}
		var told []int64
		for _, e := range read.Events {
			if e.Name == stream.EventMessage {
				m, err := stream.Decode[stream.MessageCommitted](e)
				check.OK(t, err)
				told = append(told, m.Index)
			}
		}
		want := length
		if last > 0 {
			want = min(last, length)
		}
		if len(told) != want || told[0] != int64(length-want) || told[want-1] != int64(length-1) {
			t.Errorf("of the last %d messages it reads %d, from %d to %d", last, len(told), told[0], told[len(told)-1])
		}
	}
}
