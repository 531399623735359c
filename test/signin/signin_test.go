// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/internal/gateway/signin"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/check"
)

// wants fails the test unless an answer has a status and pieces of text.
func wants(t *testing.T, what string, got answer, status int, pieces ...string) {
	t.Helper()
	if got.status != status {
		t.Errorf("%s: %d %s", what, got.status, got.body)
	}
	check.Contains(t, got.body, pieces...)
}

// signedIn is a person who has signed in, and may use chats.
func (s *site) signedIn() *person {
	s.t.Helper()
	s.allow()
	p := s.person()
	wants(s.t, "signing in", p.signIn("#/"+s.namespace), http.StatusOK, "<title>Parley</title>")
	return p
}

// allow lets the provider's user use chats.
func (s *site) allow() {
	s.t.Helper()
	cluster.Create(s.t, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "people"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "parley-chat-user"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "oidc:id1"}}})
}

func TestPersonSignsInAndUsesChats(t *testing.T) {
	for name, configure := range map[string]func(*signin.Options){"confidential client": nil,
		"public client": func(o *signin.Options) { o.ClientID, o.ClientSecret = public, "" }} {
		t.Run(name, func(t *testing.T) {
			s := startSite(t, configure)
			s.allow()
			p := s.person()
			wants(t, "before", p.chats(), http.StatusUnauthorized, "you are not signed in")
			end := p.signIn("#/" + s.namespace + "/a%20chat")
			if want := s.url + "/ui/#/" + s.namespace + "/a%20chat"; end.at.String() != want {
				t.Errorf("signing in ended at %s, want %s: %s", end.at, want, end.body)
			}
			var who apiclient.User
			check.OK(t, json.Unmarshal([]byte(p.do(http.MethodGet, s.url+"/ui/whoami", fromPage, nil).body), &who))
			check.Equal(t, "who it is", apiclient.User{Name: "oidc:id1", Groups: []string{"oidc:readers",
				"system:authenticated"}}, who)
			wants(t, "listing chats", p.chats(), http.StatusOK, `"chats"`)
			stream := p.do(http.MethodGet, s.url+"/v1beta1/namespaces/"+s.namespace+"/chats?watch=false", fromPage, nil)
			wants(t, "a stream with a bad parameter", stream, http.StatusBadRequest, "watch must be")
			wants(t, "another namespace", p.do(http.MethodGet, s.url+"/v1beta1/namespaces/default/chats", fromPage, nil),
				http.StatusForbidden, "oidc:id1")
		})
	}
}

func TestExpiredTokenIsRefreshed(t *testing.T) {
	s := startSite(t, nil)
	idp.lifetime.Store(int64(30 * time.Second)) // So each token is about to expire.
	defer idp.lifetime.Store(int64(time.Hour))
	p := s.signedIn()
	before := p.cookies()[0].Value
	wants(t, "resuming", p.resume(), http.StatusOK, "oidc:id1")
	first := p.cookies()[0].Value
	if first == before {
		t.Error("the session is as it was")
	}
	wants(t, "listing chats", p.chats(), http.StatusOK)

	idp.down.Store(true)
	down := p.resume()
	idp.down.Store(false)
	wants(t, "while the provider is down", down, http.StatusServiceUnavailable, "IdentityProviderUnavailable")
	idp.lifetime.Store(int64(time.Hour))
	wants(t, "once it is up again", p.resume(), http.StatusOK)
	lasting := p.cookies()[0].Value
	wants(t, "with a fresh token", p.resume(), http.StatusOK)
	if p.cookies()[0].Value != lasting {
		t.Error("a fresh token was refreshed")
	}
	p.setCookie(&http.Cookie{Name: p.cookies()[0].Name, Value: first, Path: "/", Secure: true})
	wants(t, "with a used refresh token", p.resume(), http.StatusUnauthorized, "sign in again")
}

func TestUnreadableKeysOfTheProviderEndNoSession(t *testing.T) {
	idp.lifetime.Store(int64(30 * time.Second))
	defer idp.lifetime.Store(int64(time.Hour))
	p := startSite(t, nil).signedIn()
	restarted := startSite(t, nil) // It has read no keys yet.
	resume := func() answer { return p.do(http.MethodPost, restarted.url+"/ui/session", fromPage, nil) }
	idp.keysDown.Store(true)
	down := resume()
	idp.keysDown.Store(false)
	wants(t, "while the keys cannot be read", down, http.StatusServiceUnavailable, "IdentityProviderUnavailable")
	wants(t, "once they can", resume(), http.StatusOK, "oidc:id1") // The provider takes a refresh token once.
}

func TestExpiredSessionAsksToSignInAgain(t *testing.T) {
	s := startSite(t, func(o *signin.Options) { o.Scopes = []string{"openid"} }) // There is no refresh token.
	p := s.signedIn()
	wants(t, "before", p.chats(), http.StatusOK)
	s.ahead.Store(int64(2 * time.Hour))
	wants(t, "listing chats", p.chats(), http.StatusUnauthorized, "the token has expired")
	wants(t, "resuming", p.resume(), http.StatusUnauthorized, "the session has expired: sign in again")
	s.ahead.Store(0)
	wants(t, "signing in again", p.signIn(""), http.StatusOK)
	wants(t, "after", p.chats(), http.StatusOK)
}

func TestSignOutEndsBothSessions(t *testing.T) {
	s := startSite(t, nil)
	p := s.signedIn()
	logout := func(from string) answer {
		return p.do(http.MethodGet, s.url+"/ui/logout", map[string]string{"Sec-Fetch-Site": from}, nil)
	}
	wants(t, "from another site", logout("cross-site"), http.StatusForbidden, "another origin")
	wants(t, "listing chats", p.chats(), http.StatusOK)
	kept := p.cookies()[0]
	var passed []string
	p.browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		passed = append(passed, r.URL.Host+r.URL.Path)
		return nil
	}
	if end := logout("same-origin"); end.at.String() != s.url+"/ui/" || end.status != http.StatusOK {
		t.Errorf("signing out ended at %s with %d %s", end.at, end.status, end.body)
	}
	if provider := strings.TrimPrefix(idp.server.URL, "https://"); passed[0] != provider+"/end_session" {
		t.Errorf("signing out passed %v", passed)
	}
	check.Equal(t, "cookies", 0, len(p.cookies()))
	wants(t, "after", p.chats(), http.StatusUnauthorized)
	s.ahead.Store(int64(2 * time.Hour))
	p.setCookie(&http.Cookie{Name: kept.Name, Value: kept.Value, Path: "/", Secure: true})
	wants(t, "with a stolen cookie, whose refresh token was revoked", p.resume(), http.StatusUnauthorized)
}

// Security (the page): cannot be signed in to by a session, a code or a redirect that was forged, changed or belongs to
// another sign-in; nor be sent to another host after signing in.
func TestForgedSignInsAreRefused(t *testing.T) {
	s := startSite(t, nil)
	s.allow()
	for name, tt := range map[string]struct {
		tamper func(url.Values)
		status int
		says   string
	}{
		"state":     {func(q url.Values) { q.Set("state", "other") }, http.StatusBadRequest, "not started in this browser"},
		"nonce":     {func(q url.Values) { q.Set("nonce", "other") }, http.StatusUnauthorized, "belongs to another sign-in"},
		"challenge": {func(q url.Values) { q.Set("code_challenge", "other") }, http.StatusUnauthorized, "sign in again"},
	} {
		p := s.person()
		p.tamper = tt.tamper
		wants(t, "another "+name, p.signIn(""), tt.status, tt.says, "To try again, open "+s.url+"/ui/")
		wants(t, "listing chats after another "+name, p.chats(), http.StatusUnauthorized)
	}
	forged := s.person().do(http.MethodGet, s.url+"/ui/callback?code=x&state=", nil, nil)
	wants(t, "no sign-in", forged, http.StatusBadRequest)
	for _, at := range []string{"//evil.example", "https://evil.example/", "#//evil.example", "#/\r\nSet-Cookie: a=b",
		"/../../evil", `#/\evil`} {
		end := s.person().signIn(at)
		if end.status != http.StatusOK || end.at.Scheme+"://"+end.at.Host != s.url || end.at.Path != "/ui/" {
			t.Errorf("from %q people are sent to %s: %d", at, end.at, end.status)
		}
	}
	p := s.person()
	p.signIn("")
	c := p.cookies()[0]
	p.setCookie(&http.Cookie{Name: c.Name, Value: c.Value[:40] + "AAAA" + c.Value[44:], Path: "/", Secure: true})
	wants(t, "listing chats with a changed cookie", p.chats(), http.StatusUnauthorized)
	wants(t, "resuming with a changed cookie", p.resume(), http.StatusUnauthorized, "sign in")
}

func TestGatewaysWithOneKeyShareSessions(t *testing.T) {
	first := startSite(t, nil)
	p := first.signedIn()
	rotated := startSite(t, func(o *signin.Options) { o.Keys = keys(t, "ba") })
	rotated.allow()
	p.site = rotated
	wants(t, "at a gateway with a newer key", p.chats(), http.StatusOK)
	other := startSite(t, func(o *signin.Options) { o.Keys = keys(t, "b") })
	other.allow()
	p.site = other
	wants(t, "at a gateway without the key", p.resume(), http.StatusUnauthorized, "the keys of the gateway have changed")
	wants(t, "signing in there", p.signIn(""), http.StatusOK)
	p.site = rotated
	wants(t, "back at the one with both keys", p.chats(), http.StatusOK)
}

func TestRefusedTokenNamesIssuerAndAudience(t *testing.T) {
	s := startSite(t, func(o *signin.Options) { o.ClientID = unknown })
	p := s.person()
	wants(t, "signing in", p.signIn(""), http.StatusUnauthorized, "the API server does not accept the token",
		idp.server.URL, unknown)
	check.Equal(t, "cookies", 0, len(p.cookies()))
}

func TestProviderThatIsDownIsNamed(t *testing.T) {
	s := startSite(t, nil)
	p := s.person()
	idp.down.Store(true)
	down := p.signIn("")
	idp.down.Store(false)
	wants(t, "signing in", down, http.StatusServiceUnavailable, idp.server.URL, "try again")
	wants(t, "the page itself", p.do(http.MethodGet, s.url+"/ui/", nil, nil), http.StatusOK)
	wants(t, "once it is up", p.signIn(""), http.StatusOK)
}

// Security (the page): cannot, by another page or a program, be used with the cookie of someone who has signed in.
func TestOnlyThePageUsesItsCookies(t *testing.T) {
	s := startSite(t, nil)
	p := s.signedIn()
	chats := s.url + "/v1beta1/namespaces/" + s.namespace + "/chats"
	with := func(more ...string) map[string]string {
		header := map[string]string{signin.PageHeader: "1"}
		for i := 0; i < len(more); i += 2 {
			header[more[i]] = more[i+1]
		}
		return header
	}
	resume := s.url + "/ui/session"
	for name, tt := range map[string]struct {
		method, at string
		header     map[string]string
		status     int
	}{
		"a program reads":             {http.MethodGet, chats, nil, http.StatusUnauthorized},
		"a bearer token wins":         {http.MethodGet, chats, with("Authorization", "Bearer a.b"), http.StatusUnauthorized},
		"a form of another site":      {http.MethodPost, chats, nil, http.StatusUnauthorized},
		"a script of another site":    {http.MethodPost, chats, with("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"a script of another origin":  {http.MethodPost, chats, with("Origin", "https://evil.example"), http.StatusForbidden},
		"another site resumes":        {http.MethodPost, resume, with("Sec-Fetch-Site", "same-site"), http.StatusForbidden},
		"a form resumes":              {http.MethodPost, resume, nil, http.StatusForbidden},
		"a program of OpenAI's reads": {http.MethodGet, s.url + "/v1/models", with(), http.StatusUnauthorized},
	} {
		wants(t, name, p.do(tt.method, tt.at, tt.header, nil), tt.status)
	}
	wants(t, "the page", p.chats(), http.StatusOK)
}
