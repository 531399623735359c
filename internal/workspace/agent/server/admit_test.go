// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/tokens"
)

func TestHealthNeedsNothing(t *testing.T) {
	a := unboundAgent(t)
	got := a.get("/v1/health", func(r *http.Request) { r.Header = http.Header{} })
	if got.err != nil || got.status != http.StatusOK || got.body != "ok\n" {
		t.Errorf("got %+v", got)
	}
}

// requests are one of each kind.
var requests = []string{"PUT /v1/binding", "GET /v1/info", "PUT /v1/processes/key", "GET /v1/processes",
	"GET /v1/processes/p1", "GET /v1/processes/p1/output", "POST /v1/processes/p1/signal",
	"GET /v1/files?path=file", "HEAD /v1/files?path=file", "PUT /v1/files?path=file", "POST /v1/read", "POST /v1/edits",
	"POST /v1/search", "POST /v1/sessions/key", "GET /v1/nothing", "DELETE /v1/files?path=file", "GET /"}

// each sends one request of each kind, and checks what is answered to it.
func (a *agent) each(status int, code protocol.ErrorCode, change func(*http.Request)) {
	a.t.Helper()
	for _, request := range requests {
		method, path, _ := strings.Cut(request, " ")
		if strings.HasPrefix(path, "/v1/binding") && (code == protocol.Unbound || code == protocol.BoundToAnother) {
			continue
		}
		got := a.do(method, path, strings.NewReader(`{"chat":"`+chat+`"}`), change)
		expected := code
		if method == http.MethodHead {
			expected = ""
		}
		a.expect(got, status, expected)
	}
	if found, err := os.ReadDir(a.dir); err != nil || len(found) > 0 {
		a.t.Errorf("the files are %v: %v", found, err)
	}
}

// Security (a hostile MCP server): cannot be called, as a program in the workspace, by others than the generation pods
// of the workspace's chats. Also TestWorkspaceStaysBoundToFirstChat of internal/workspace/agent/server.
func TestUnauthenticatedRequestsAreRejected(t *testing.T) {
	a := newAgent(t)
	stranger := tokens.New(t)
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	claims := func(change func(*jwt.Claims)) func(*http.Request) { return bearer(a.sign(change)) }
	for name, tt := range map[string]struct {
		change func(*http.Request)
		status int
		code   protocol.ErrorCode
	}{
		"no token": {func(r *http.Request) { r.Header.Del("Authorization") }, 401, protocol.Unauthenticated},
		"another scheme": {func(r *http.Request) { r.Header.Set("Authorization", "Basic "+a.token) }, 401,
			protocol.Unauthenticated},
		"an empty token": {bearer(""), 401, protocol.Unauthenticated},
		"no JWT":         {bearer("secret content"), 401, protocol.Unauthenticated},
		"a stranger's": {bearer(stranger.Sign(tokens.FirstKey, tokens.Claims(generator, audience, a.clock.Now()))), 401,
			protocol.Unauthenticated},
		"one for the relay of the pod": {claims(func(c *jwt.Claims) { c.Audience = jwt.Audience{"parley-relay/shop/0d1c-pod"} }),
			401, protocol.Unauthenticated},
		"one for another workspace": {claims(func(c *jwt.Claims) {
			c.Audience = jwt.Audience{protocol.Audience("shop", "other")}
		}), 401, protocol.Unauthenticated},
		"an expired one": {claims(func(c *jwt.Claims) { c.Expiry = jwt.NewNumericDate(a.clock.Now().Add(-time.Hour)) }),
			401,
			protocol.Unauthenticated},
		"a generation pod's of another namespace": {claims(func(c *jwt.Claims) {
			c.Subject = "system:serviceaccount:bank:parley-generation"
		}), 403, protocol.Forbidden},
		"another account's of the namespace": {claims(func(c *jwt.Claims) {
			c.Subject = "system:serviceaccount:shop:default"
		}),
			403, protocol.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			a.each(tt.status, tt.code, tt.change)
			if got := a.get("/v1/info", tt.change); tt.status == 401 && got.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("got %v", got.header)
			}
		})
	}
}

func TestIssuerKeysAreReloadedFromChangedFile(t *testing.T) {
	a := newAgent(t)
	try := func(key string, status int, code protocol.ErrorCode) {
		t.Helper()
		token := a.cluster.Sign(key, tokens.Claims(generator, audience, a.clock.Now()))
		a.expect(a.get("/v1/info", func(r *http.Request) { r.Header.Set("Authorization", "bearer "+token) }), status, code)
	}
	try("first", 200, "")
	a.cluster.Rotate("second")
	a.publish("second", a.cluster.KeySet())
	a.clock.pass(keysReread - time.Second)
	try("second", 401, protocol.Unauthenticated)
	a.clock.pass(time.Second)
	try("second", 200, "")
	try("first", 401, protocol.Unauthenticated)

	for version, content := range map[string]string{"broken": "{", "empty": "", "without keys": `{"keys":[]}`} {
		a.publish(version, []byte(content))
		a.clock.pass(keysReread)
		try("second", 200, "")
	}
	check.OK(t, os.RemoveAll(a.keys))
	a.clock.pass(keysReread)
	try("second", 200, "")
	if !strings.Contains(a.log.String(), "keys of the cluster's issuer cannot be read") {
		t.Errorf("the log says %q", a.log.String())
	}
}

func TestMissingIssuerKeysReturnUnavailableWithRetryAfter(t *testing.T) {
	a := unboundAgent(t)
	check.OK(t, os.RemoveAll(a.keys))
	a.restart()
	a.each(http.StatusServiceUnavailable, protocol.Unavailable, func(*http.Request) {})
	if got := a.get("/v1/info"); got.header.Get("Retry-After") == "" {
		t.Errorf("got %v", got.header)
	}
	a.publish("later", a.cluster.KeySet())
	a.clock.pass(keysReread)
	a.expect(a.put("/v1/binding", protocol.Binding{Chat: chat}), http.StatusOK, "")
}

// Security (a hostile model): can take the workspace of a pool, or of podRef, that no chat has called before: it is
// bound to the first one, until its pod is recreated. Also TestConcurrentBindingsAcceptOnlyOneChat of
// internal/workspace/agent/server.
func TestWorkspaceStaysBoundToFirstChat(t *testing.T) {
	a := unboundAgent(t)
	a.each(http.StatusConflict, protocol.Unbound, func(*http.Request) {})
	for range 2 {
		a.expect(a.put("/v1/binding", protocol.Binding{Chat: chat}), http.StatusOK, "")
		a.expect(a.put("/v1/binding", protocol.Binding{Chat: otherChat}), http.StatusConflict, protocol.BoundToAnother)
		a.expect(a.get("/v1/info"), http.StatusOK, "")
		for _, header := range []string{otherChat, "", strings.ToUpper(chat), chat + " ,"} {
			a.each(http.StatusConflict, protocol.BoundToAnother, func(r *http.Request) {
				r.Header.Set(protocol.HeaderChat, header)
			})
		}
		a.restart()
	}
}

func TestConcurrentBindingsAcceptOnlyOneChat(t *testing.T) {
	a := unboundAgent(t)
	var asking sync.WaitGroup
	var mu sync.Mutex
	bound := map[string]bool{}
	for i := range 40 {
		asking.Go(func() {
			uid := fmt.Sprintf("chat-%d", i%4)
			got := a.put("/v1/binding", protocol.Binding{Chat: uid})
			mu.Lock()
			defer mu.Unlock()
			if got.status == http.StatusOK {
				bound[uid] = true
			} else if err := got.is(http.StatusConflict, protocol.BoundToAnother); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if len(bound) != 1 {
		t.Fatalf("bound are %v", bound)
	}
	a.restart()
	for uid := range bound {
		a.expect(a.put("/v1/binding", protocol.Binding{Chat: uid}), http.StatusOK, "")
	}
}

func TestWhatIsNoUIDCannotBeBoundTo(t *testing.T) {
	a := unboundAgent(t)
	for name, uid := range map[string]string{"nothing": "", "too long": strings.Repeat("a", 65),
		"very long": strings.Repeat("a", 1<<20),
		"a path":    "../../etc/passwd", "up": "..", "a slash": "a/b", "a newline": "a\nb", "a zero byte": "a\x00",
		"a letter":     "ä",
		"a dash first": "-a"} {
		if err := a.put("/v1/binding", protocol.Binding{Chat: uid}).is(http.StatusBadRequest,
			protocol.BadRequest); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if kept, err := filepath.Glob(filepath.Join(a.state, "binding*")); err != nil || len(kept) > 0 {
		t.Errorf("kept are %q: %v", kept, err)
	}
}

func TestUnreadableBindingRejectsAllRequests(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"emptied":       func(file string) error { return os.Truncate(file, 0) },
		"cut":           func(file string) error { return os.Truncate(file, 10) },
		"no JSON":       func(file string) error { return os.WriteFile(file, []byte("\x00\xff"), 0o600) },
		"another kind":  func(file string) error { return os.WriteFile(file, []byte(`["`+chat+`"]`), 0o600) },
		"more members":  func(file string) error { return os.WriteFile(file, []byte(`{"chat":"`+chat+`","x":1}`), 0o600) },
		"without chat":  func(file string) error { return os.WriteFile(file, []byte(`{}`), 0o600) },
		"not a UID":     func(file string) error { return os.WriteFile(file, []byte(`{"chat":"../x"}`), 0o600) },
		"a directory":   func(file string) error { return os.Rename(filepath.Dir(file)+"/files", file) },
		"a link around": func(file string) error { return os.Symlink("binding.json", file) },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t)
			a.stop()
			file := filepath.Join(a.state, "binding.json")
			if strings.HasPrefix(name, "a ") {
				check.OK(t, os.Remove(file))
			}
			check.OK(t, spoil(file))
			a.start()
			a.each(http.StatusInternalServerError, protocol.Internal, func(*http.Request) {})
			if got := a.get("/v1/info"); !strings.Contains(got.body, "replaced") {
				t.Errorf("got %q", got.body)
			}
			if !strings.Contains(a.log.String(), "binding cannot be read") {
				t.Errorf("the log says %q", a.log.String())
			}
			a.expect(a.get("/v1/health"), http.StatusOK, "")
		})
	}
}

func TestABindingThatWasHalfWrittenIsNone(t *testing.T) {
	a := unboundAgent(t)
	a.stop()
	check.OK(t, os.WriteFile(filepath.Join(a.state, "binding.json.unfinished"), []byte(`{"chat":"`), 0o600))
	a.start()
	a.expect(a.put("/v1/binding", protocol.Binding{Chat: otherChat}), http.StatusOK, "")
}

func TestABindingThatCannotBeWrittenIsNone(t *testing.T) {
	a := unboundAgent(t)
	check.OK(t, os.Mkdir(filepath.Join(a.state, "binding.json.unfinished"), 0o755))
	a.expect(a.put("/v1/binding", protocol.Binding{Chat: chat}), http.StatusInternalServerError, protocol.Internal)
	a.expect(a.get("/v1/info"), http.StatusConflict, protocol.Unbound)
	check.OK(t, os.RemoveAll(filepath.Join(a.state, "binding.json.unfinished")))
	a.expect(a.put("/v1/binding", protocol.Binding{Chat: chat}), http.StatusOK, "")
}
