// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package recordings_test

import (
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
)

func decoded(body string) object {
	root := object{}
	if json.Unmarshal([]byte(body), &root) != nil {
		return nil
	}
	return root
}

func seedOf(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// wire is everything that the provider says in a recording, in plain letters.
func (c cassette) wire() string {
	var all strings.Builder
	for _, i := range c.Interactions {
		all.WriteString(i.Response.Body)
		for _, event := range frames([]byte(i.Response.Body)) {
			raw, _ := json.Marshal(event)
			all.Write(raw)
		}
	}
	return all.String()
}

// TestRealConversationsAreCommittedAndSentAsRecorded plays every recording.
func TestRealConversationsAreCommittedAndSentAsRecorded(t *testing.T) {
	t.Parallel()
	for _, c := range cassettes(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, seedOf(c.Name))
			chat, wire := newConversation(t, c.Interactions[0], s.client()), c.wire()
			for n, i := range c.Interactions {
				recorded := parse(chat.protocol, i.Request.Body)
				chat.hear(recorded.Said)
				s.serve(i, len(i.Response.Body), false)
				got, err := chat.ask(t.Context())
				if err != nil {
					t.Fatalf("reply %d: %v", n, err)
				}
				holdRequest(t, c.Name, n, recorded, parse(chat.protocol, string(s.sent)), wire)
				want := read(chat.protocol, i.Response.Headers.Get("Content-Type"), i.Response.Body)
				own := func(name string) bool { return chat.ownTool(name) && name != "computer" }
				ours := replyOf(got, wire)
				for k := range want.Calls {
					if want.Calls[k].ID == "" && k < len(ours.Calls) {
						ours.Calls[k].ID = ""
					}
				}
				ours.Ended = true
				if diff := cmp.Diff(want.outline(own), ours.outline(own)); diff != "" {
					t.Errorf("reply %d is committed as something else: -said +committed\n%s", n, diff)
				}
				chat.commit(got)
			}
		})
	}
}

func holdRequest(t *testing.T, name string, n int, recorded, sent request, wire string) {
	t.Helper()
	for _, known := range harmless {
		if strings.Contains(name, known.in) {
			t.Log(known.why)
			recorded, sent = known.without(recorded), known.without(sent)
		}
	}
	if diff := cmp.Diff(recorded.outline(wire), sent.outline(wire)); diff != "" {
		t.Errorf("request %d is another one: -recorded +sent\n%s", n, diff)
	}
	for _, sealed := range recorded.Sealed {
		if !strings.Contains(strings.Join(sent.Sealed, " "), sealed) {
			t.Errorf("request %d does not give back %.40s…", n, sealed)
		}
	}
}

// breaks is how many broken forms of each reply are served.
const breaks = 6

// TestTruncatedRecordedReplyIsNeverCommitted breaks every recorded reply at random places, also within an event: by a
// reset of the connection and by an orderly end. Unless its end was served, the call is tried again.
func TestTruncatedRecordedReplyIsNeverCommitted(t *testing.T) {
	t.Parallel()
	for _, c := range cassettes(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			s, random := newStand(t, seedOf(c.Name)), rand.New(rand.NewPCG(seedOf(c.Name), 2))
			chat, i := newConversation(t, c.Interactions[0], s.client()), c.Interactions[0]
			chat.hear(parse(chat.protocol, i.Request.Body).Said)
			for n := range breaks {
				size := 1 + random.IntN(len(i.Response.Body)-1)
				if n%3 == 2 { // Between two events.
					size = max(1, strings.LastIndex(i.Response.Body[:size], "\n\n")+2)
				}
				if read(chat.protocol, i.Response.Headers.Get("Content-Type"), i.Response.Body[:size]).Ended {
					continue
				}
				s.serve(i, size, n%2 == 0)
				_, err := chat.ask(t.Context())
				if err == nil {
					t.Errorf("a reply of which %d of %d bytes came is committed", size, len(i.Response.Body))
					continue
				}
				got := fault.Classify(err, fault.Subject{Config: "models", Spec: &chat.spec})
				if got.Reason != v1beta1.ErrorProviderUnavailable || !got.Retryable {
					t.Errorf("of a reply of which %d of %d bytes came it is said: %s, retryable %v (%v)", size, len(i.Response.Body),
						got.Reason, got.Retryable, err)
				}
			}
		})
	}
}
