// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// answers is a gateway that is asked without a network.
type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// answered is an answer. header alternates between names and values.
func answered(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// asking is a client of it, in namespace ns.
func asking(gateway answers) Namespace {
	c := &Client{URL: "http://gateway/", HTTP: &http.Client{Transport: gateway},
		Token: func(context.Context) (string, error) { return "secret", nil }}
	return c.Namespace("ns")
}

func TestEachOperationIsTheRequestOfThePage(t *testing.T) {
	ctx := t.Context()
	for want, do := range map[string]func(n Namespace) error{
		"GET /chats?continue=x&limit=7": func(n Namespace) error { _, err := n.ListChats(ctx, 7, "x"); return err },
		`POST /chats {"name":"c","spec":{"prompt":"Hi."}}`: func(n Namespace) error {
			_, err := n.CreateChat(ctx, NewChat{Name: "c", Spec: v1beta1.ChatSpec{Prompt: "Hi."}})
			return err
		},
		"GET /chats/c": func(n Namespace) error { _, err := n.GetChat(ctx, "c"); return err },
		`PATCH /chats/c {"spec":{"title":null}}`: func(n Namespace) error {
			_, err := n.ChangeChat(ctx, "c", Change{Spec: map[string]any{"title": nil}})
			return err
		},
		"DELETE /chats/c": func(n Namespace) error { return n.DeleteChat(ctx, "c") },
		`POST /chats/c/messages {"content":"Hi.","whenBusy":"Interrupt"}`: func(n Namespace) error {
			_, err := n.Send(ctx, "c", NewMessage{Content: "Hi.", WhenBusy: v1beta1.WhenBusyInterrupt})
			return err
		},
		"GET /chats/c/messages/m": func(n Namespace) error { _, err := n.GetMessage(ctx, "c", "m"); return err },
		`PATCH /chats/c/messages/m {"resourceVersion":"7","content":"Ho."}`: func(n Namespace) error {
			_, err := n.EditMessage(ctx, "c", "m", Edit{ResourceVersion: "7", Content: "Ho."})
			return err
		},
		"DELETE /chats/c/messages/m":       func(n Namespace) error { return n.DeleteMessage(ctx, "c", "m") },
		"POST /chats/c/messages/m/promote": func(n Namespace) error { _, err := n.Promote(ctx, "c", "m"); return err },
		`POST /chats/c/requests?wait=0 {"kind":"Clear","token":"t"}`: func(n Namespace) error {
			_, err := n.Request(ctx, "c", Request{Kind: v1beta1.RequestClear, Token: "t", WaitSeconds: new(0)})
			return err
		},
		`POST /chats/c/approvals {"toolCallID":"1","decision":"Deny"}`: func(n Namespace) error {
			_, err := n.Decide(ctx, "c", Decision{ToolCallID: "1", Decision: v1beta1.DecisionDeny})
			return err
		},
		`POST /chats/c/results {"results":[{"id":"1","output":"2"}]}`: func(n Namespace) error {
			_, err := n.Answer(ctx, "c", Results{Results: []Result{{ID: "1", Output: "2"}}})
			return err
		},
		"GET /modelconfigs": func(n Namespace) error { _, err := n.ModelConfigs(ctx); return err },
		"GET /chatclasses":  func(n Namespace) error { _, err := n.ChatClasses(ctx); return err },
	} {
		t.Run(want, func(t *testing.T) {
			got := ""
			err := do(asking(func(r *http.Request) (*http.Response, error) {
				body := []byte{}
				if r.Body != nil {
					body, _ = io.ReadAll(r.Body)
				}
				path := strings.TrimPrefix(r.URL.RequestURI(), "/v1beta1/namespaces/ns")
				got = strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, path, body))
				check.Equal(t, "asked as", "Bearer secret", r.Header.Get("Authorization"))
				return answered(http.StatusOK, "{}"), nil
			}))
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("(-want +got):\n%s%v", diff, err)
			}
		})
	}
}

func TestRefusalIsATypedError(t *testing.T) {
	n := asking(func(*http.Request) (*http.Response, error) {
		return answered(http.StatusConflict, `{"status":409,"reason":"AlreadyExists","message":"c is there"}`,
			"Retry-After", "7"), nil
	})
	_, err := n.CreateChat(t.Context(), NewChat{Name: "c"})
	refused, ok := errors.AsType[*Error](err)
	want := Error{Status: http.StatusConflict, Reason: "AlreadyExists", Message: "c is there", RetryAfter: 7 * time.Second}
	if !ok || *refused != want {
		t.Errorf("got %#v", err)
	}
}

func TestARedirectDoesNotTakeTheTokenElsewhere(t *testing.T) {
	n := asking(func(r *http.Request) (*http.Response, error) {
		check.Equal(t, r.URL, "gateway", r.URL.Host)
		return answered(http.StatusTemporaryRedirect, "", "Location", "http://elsewhere/"), nil
	})
	n.client.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
	if _, err := n.GetChat(t.Context(), "c"); err == nil || !strings.Contains(err.Error(), "(307)") {
		t.Errorf("error %v", err)
	}
	for _, err := range n.Follow(t.Context(), "c", FollowOptions{}) {
		if err == nil || !strings.Contains(err.Error(), "(307)") {
			t.Errorf("error %v", err)
		}
	}
}

func TestANameIsNoPath(t *testing.T) {
	n := asking(func(r *http.Request) (*http.Response, error) {
		t.Errorf("asked for %s", r.URL)
		return answered(http.StatusOK, "{}"), nil
	})
	for _, name := range []string{"", ".", "..", "c/messages/m", "c?watch", "c%2F", "C"} {
		if _, err := n.GetChat(t.Context(), name); err == nil || !strings.Contains(err.Error(), "is not the name") {
			t.Errorf("%q: %v", name, err)
		}
		if err := n.client.Namespace(name).DeleteChat(t.Context(), "c"); err == nil {
			t.Errorf("namespace %q is asked for", name)
		}
		for _, err := range n.Follow(t.Context(), name, FollowOptions{}) {
			if err == nil {
				t.Errorf("%q is followed", name)
			}
		}
	}
}

// endless is a body without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

func TestAnAnswerIsNotReadForEver(t *testing.T) {
	for status, most := range map[int]int{http.StatusOK: maxAnswer + 1, http.StatusForbidden: maxRefusal} {
		body := &endless{}
		n := asking(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body)}, nil
		})
		if _, err := n.GetChat(t.Context(), "c"); err == nil || body.read > 2*most {
			t.Errorf("%d: read %d bytes, %v", status, body.read, err)
		}
	}
}

func TestATokenThatCannotBeHadIsSaid(t *testing.T) {
	n := asking(nil)
	n.client.Token = func(context.Context) (string, error) { return "", errors.New("the file is gone") }
	if _, err := n.GetChat(t.Context(), "c"); err == nil || !strings.Contains(err.Error(), "the file is gone") {
		t.Errorf("error %v", err)
	}
}

func TestAnswersAreReadAsTheirKinds(t *testing.T) {
	raw, err := json.Marshal(v1beta1.Chat{Spec: v1beta1.ChatSpec{Title: "A"}})
	check.OK(t, err)
	n := asking(func(*http.Request) (*http.Response, error) { return answered(http.StatusOK, string(raw)), nil })
	if chat, err := n.GetChat(t.Context(), "c"); err != nil || chat.Spec.Title != "A" {
		t.Errorf("got %+v, %v", chat, err)
	}
}
