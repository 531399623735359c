// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlchat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func status(turn, ready string) event {
	return event{name: "status", data: fmt.Appendf(nil, `{"turn":%q,"ready":%q}`, turn, ready)}
}

func text(version int, text string) event {
	return event{name: "message_part",
		data: fmt.Appendf(nil,
			`{"historyVersion":%d,"attempt":1,"seq":1,"role":"Assistant","part":{"type":"Text","text":%q}}`, version, text)}
}

func committed(version int, role, text string) event {
	return event{name: "message",
		data: fmt.Appendf(nil,
			`{"historyVersion":%d,"index":1,"message":{"name":"m","role":%q,"attempt":1,"parts":[{"type":"Text","text":%q}]}}`,
			version, role, text)}
}

func asked(version int, name string) event {
	return event{name: "message",
		data: fmt.Appendf(nil, `{"historyVersion":%d,"index":1,"message":{"name":%q,"role":"User","content":"question"}}`,
			version, name)}
}

func called(version int, parts string) event {
	return event{name: "message",
		data: fmt.Appendf(nil,
			`{"historyVersion":%d,"index":1,"message":{"name":"m","role":"Assistant","attempt":1,"parts":[%s]}}`, version,
			parts)}
}

func streamed(version int, part string) event {
	return event{name: "message_part",
		data: fmt.Appendf(nil, `{"historyVersion":%d,"attempt":1,"seq":1,"role":"Assistant","part":%s}`, version, part)}
}

const (
	call   = `{"type":"ToolCall","toolCall":{"id":"1","name":"current_time","input":"{}"}}`
	result = `{"type":"ToolResult","toolResult":{"id":"1","name":"current_time","output":"noon\n"}}`
)

var hints = hint{chat: "triage",
	command: func(words ...string) string { return "kubectl chat " + strings.Join(words, " ") }}

func TestOnlyTheTurnOfTheMessageIsShown(t *testing.T) {
	for name, c := range map[string]struct {
		early, later []event
		want         string
	}{
		"a turn that begins at once": {
			early: []event{status("old", "True")},
			later: []event{status("mine", "Unknown"), text(3, "Hel"), text(3, "lo"), committed(4, "Assistant", "Hello"),
				status("mine", "True"), text(5, "later")},
			want: "Hello\n",
		},
		"events that came before the name was known": {
			early: []event{status("mine", "Unknown"), text(3, "Hel")},
			later: []event{text(3, "lo"), committed(4, "Assistant", "Hello"), status("mine", "True")},
			want:  "Hello\n",
		},
		"a turn that waits for another one": {
			early: []event{status("other", "Unknown"), text(1, "not mine")},
			later: []event{text(1, "nor this"), status("mine", "Unknown"), text(3, "Hello"), committed(4, "Assistant", "Hello"),
				status("next", "Unknown"), text(5, "later")},
			want: "Hello\n",
		},
		"parts that were missed": {
			later: []event{status("mine", "Unknown"), text(3, "Hel"), committed(4, "Assistant", "Hello"),
				status("mine", "True")},
			want: "Hello\n",
		},
		"a reply that comes with its question as one change": {
			later: []event{asked(3, "mine"), committed(4, "Assistant", "Hello"), status("mine", "True"), text(5, "later")},
			want:  "Hello\n",
		},
		"a reply whose commit begins the next turn": {
			later: []event{asked(3, "mine"), status("mine", "Unknown"), committed(4, "Assistant", "Hello"), asked(4, "next"),
				status("next", "Unknown"), text(4, "later")},
			want: "Hello\n",
		},
		"a turn that was promoted by the reply before": {
			later: []event{committed(3, "Assistant", "not mine"), asked(3, "mine"), status("mine", "Unknown"), text(3, "Hello"),
				committed(4, "Assistant", "Hello"), status("mine", "True")},
			want: "Hello\n",
		},
		"a reply that is not what was streamed": {
			later: []event{asked(3, "mine"), text(3, "Hullo"), committed(4, "Assistant", "Hello"), status("mine", "True")},
			want:  "Hullo\nHello\n",
		},
		"a tool that is streamed": {
			later: []event{
				asked(3, "mine"), streamed(3, `{"type":"ToolCall","id":"1","name":"current_time","text":"{}"}`), called(4, call),
				status("mine", "Unknown"),
				streamed(4, `{"type":"ToolResult","id":"1","name":"current_time","text":"noon\n"}`), called(5, result),
				text(5, "It is noon"), committed(6, "Assistant", "It is noon"), status("mine", "True"),
			},
			want: "▎[current_time {}] -> noon\nIt is noon\n",
		},
		"a tool that is only committed": {
			later: []event{asked(3, "mine"), called(4, call), called(5, result), committed(6, "Assistant", "It is noon"),
				status("mine", "True")},
			want: "▎[current_time {}] -> noon\nIt is noon\n",
		},
		"results of a client, which do not name the tools": {
			later: []event{asked(3, "mine"), called(4, call+","+strings.ReplaceAll(call, `"1"`, `"2"`)),
				{name: "message",
					data: []byte(`{"historyVersion":5,"index":2,"message":{"name":"r","role":"Tool","parts":[` +
						strings.ReplaceAll(result, `"name":"current_time",`, "") + `]}}`)}, committed(6, "Assistant", "It is noon"),
				status("mine", "True")},
			want: "▎[current_time {}]\n▎[current_time {}]\n▎[current_time] -> noon\nIt is noon\n",
		},
		"an attempt that was lost": {
			later: []event{status("mine", "Unknown"), text(3, "Hel"), {name: "preview_reset", data: []byte(`{}`)},
				text(3, "Good day"), committed(4, "Assistant", "Good day"), status("mine", "True")},
			want: "Hel\nGood day\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut strings.Builder
			f := &turn{printer: newPrinter(&out, &errOut, false, hints), over: make(chan struct{})}
			for _, e := range c.early {
				if done, err := f.event(e); done || err != nil {
					t.Fatalf("ended early: %v", err)
				}
			}
			if err := f.begin("mine"); err != nil {
				t.Fatal(err)
			}
			for _, e := range c.later {
				done, err := f.event(e)
				if err != nil {
					t.Fatal(err)
				}
				if done {
					break
				}
			}
			if out.String() != c.want {
				t.Errorf("shown %q, want %q", out.String(), c.want)
			}
		})
	}
}

func TestALostStreamIsResumedBehindItsLastEvent(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery+"|"+r.Header.Get("Last-Event-ID"))
		if len(asked) == 1 {
			fmt.Fprint(w,
				"retry: 1000\n\nid: 3.1.1\nevent: message_part\ndata: {}\n\nevent: status\ndata: {}\n\nid: 3.1.2\nevent: "+
					"message_part\ndata: {\"cut\":")
			return
		}
		fmt.Fprint(w, "id: 3.1.2\nevent: message_part\ndata: {}\n\nevent: deleted\ndata: {}\n\n")
	}))
	defer server.Close()
	var seen []string
	g := &gateway{url: server.URL, http: server.Client()}
	err := g.follow(t.Context(), "ns", "c", false, nil, func(e event) (bool, error) {
		seen = append(seen, e.name+e.id)
		return e.name == "deleted", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"message_part3.1.1", "status", "message_part3.1.2", "deleted"}; !slices.Equal(seen, want) {
		t.Errorf("saw %v, want %v", seen, want)
	}
	if want := []string{"from=now|", "|3.1.1"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
}

func TestARefusalIsFinalAndSaysWhy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"message":"may not get chats/stream in namespace ns"}`)
	}))
	defer server.Close()
	g := &gateway{url: server.URL, http: server.Client()}
	err := g.follow(context.Background(), "ns", "c", false, nil, func(event) (bool, error) { return false, nil })
	if err == nil || !strings.Contains(err.Error(), "may not get chats/stream") {
		t.Errorf("error %v", err)
	}
}

func TestBegunStreamWaitsForABusyGateway(t *testing.T) {
	var asked []time.Time
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch asked = append(asked, time.Now()); len(asked) {
		case 1:
			fmt.Fprint(w, "id: 3.1.1\nevent: message_part\ndata: {}\n\n")
		case 2:
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			fmt.Fprint(w, "event: deleted\ndata: {}\n\n")
		}
	}))
	defer server.Close()
	g := &gateway{url: server.URL, http: server.Client()}
	err := g.follow(t.Context(), "ns", "c", false, nil, func(e event) (bool, error) { return e.name == "deleted", nil })
	if err != nil || len(asked) != 3 || asked[2].Sub(asked[1]) < 2*time.Second {
		t.Errorf("asked at %v: %v", asked, err)
	}
}

func TestOneStreamTooManyIsRefusedAtOnce(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Retry-After", "10")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"message":"alice has 128 streams open"}`)
	}))
	defer server.Close()
	g := &gateway{url: server.URL, http: server.Client()}
	err := g.follow(t.Context(), "ns", "c", false, nil, func(event) (bool, error) { return false, nil })
	if err == nil || !strings.Contains(err.Error(), "alice has 128 streams open") || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

func TestALostGatewayIsLookedForAnew(t *testing.T) {
	answer := func(text string) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }))
	}
	first := answer("id: 3.1.1\nevent: message_part\ndata: {}\n\n")
	second := answer("event: deleted\ndata: {}\n\n")
	defer second.Close()
	stopped, tries := 0, 0
	g := &gateway{url: first.URL, http: &http.Client{}, stop: func() { stopped++ }}
	g.open = func(context.Context) (string, func(), error) {
		if tries++; tries == 1 {
			return "", nil, errors.New("no gateway pod is ready")
		}
		return second.URL, func() {}, nil
	}
	err := g.follow(t.Context(), "ns", "c", false, nil, func(e event) (bool, error) {
		return e.name == "deleted", nil
	})
	first.Close()
	if err != nil || tries != 2 || stopped != 1 {
		t.Errorf("error %v after %d tries, stopped %d times", err, tries, stopped)
	}
}
