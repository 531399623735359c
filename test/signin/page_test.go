// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"strings"
	"testing"
	"time"

	"parley.dev/parley/internal/gateway/signin"
	"parley.dev/parley/test/kit/browser"
	"parley.dev/parley/test/kit/check"
)

func TestPersonSignsInOnThePage(t *testing.T) {
	s := startSite(t, nil)
	s.allow()
	p := browser.Open(t, browser.Start(t, browser.AnyCertificate), s.url+"/ui/#/"+s.namespace+"/none")
	p.Sees("#sign-in", "You are not signed in")
	p.Click("#sign-in button", "Sign in")
	enterAtProvider(p, "test-user@127.0.0.1")
	p.Sees("#account", "oidc:id1")
	p.Until("the page is where it was", `location.hash === "#/`+s.namespace+`/none"`)
	p.Until("the namespace is listed", `document.getElementById("namespace").value === "`+s.namespace+`"`)

	idp.lifetime.Store(int64(5 * time.Hour)) // Of the next token.
	defer idp.lifetime.Store(int64(time.Hour))
	before := idp.refreshed.Load()
	s.ahead.Store(int64(2 * time.Hour))
	newChat(p, "first")
	p.Sees("#chats a", "first")
	check.Equal(t, "refresh tokens that the page used", 1, idp.refreshed.Load()-before)

	s.ahead.Store(int64(10 * time.Hour))
	idp.down.Store(true)
	newChat(p, "second")
	p.Sees("#connection", "does not answer")
	s.ahead.Store(int64(2 * time.Hour))
	idp.down.Store(false)
	p.Sees("#chats a", "second")

	p.Click("#account", "oidc:id1")
	p.Sees("dialog li", "oidc:readers")
	p.Click("dialog button", "Sign out")
	p.Sees("#sign-in", "You are not signed in")
	p.Sees("#connection", "You are signed out.")
	p.Sees("#list-empty", "You are signed out.")
	p.Do("document.querySelector('#sign-in details').open = true")
	s.ahead.Store(0)
	cluster.Account(t, s.namespace, "someone")
	p.Type("#sign-in input[type=password]", cluster.Token(t, s.namespace, "someone"))
	p.Key("Enter")
	p.Sees("#account", "system:serviceaccount:"+s.namespace+":someone")
	p.Click("#account", "someone")
	p.Click("dialog button", "Sign out")
	p.Sees("#sign-in", "You are not signed in")
}

func TestAnotherPersonGetsNoDrafts(t *testing.T) {
	s := startSite(t, nil)
	s.allow()
	p := browser.Open(t, browser.Start(t, browser.AnyCertificate), s.url+"/ui/#/"+s.namespace)
	p.Click("#sign-in button", "Sign in")
	enterAtProvider(p, "test-user@127.0.0.1")
	p.Sees("#account", "oidc:id1")
	for _, next := range []struct{ user, do string }{
		{"oidc:id1", "location.reload()"},
		{"oidc:id2", "location.assign('/ui/login')"},
		{"oidc:id2", "new BroadcastChannel('parley session').postMessage('oidc:id1')"}, // Of another tab.
	} {
		p.Click("button", "New chat")
		p.Clear("dialog textarea")
		p.Type("dialog textarea", "A secret")
		p.Do("window.old = true; document.querySelector('dialog').close(); " + next.do)
		if strings.Contains(next.do, "login") {
			enterAtProvider(p, "test-user2")
		}
		p.Until("the page has reloaded", "!window.old && document.getElementById('account')")
		p.Sees("#account", next.user)
		kept := "Object.keys(sessionStorage).some((key) => key.startsWith('parley.draft.'))"
		if next.do != "location.reload()" {
			kept = "!" + kept
		}
		p.Until("drafts are kept for who typed them", kept)
		p.Do("location.hash = '#/" + s.namespace + "'")
	}
}

func TestTokenOfAnotherPersonGetsNoDrafts(t *testing.T) {
	s := startSite(t, func(o *signin.Options) { o.Scopes = []string{"openid"} }) // There is no refresh token.
	s.allow()
	p := browser.Open(t, browser.Start(t, browser.AnyCertificate), s.url+"/ui/#/"+s.namespace)
	p.Click("#sign-in button", "Sign in")
	enterAtProvider(p, "test-user@127.0.0.1")
	p.Sees("#account", "oidc:id1")
	p.Click("button", "New chat")
	p.Type("dialog textarea", "A secret")
	s.ahead.Store(int64(2 * time.Hour))
	p.Click("dialog button", "Begin")
	p.Sees("#sign-in", "expired")

	p.Do(`window.old = true; window.whoami = 0; const real = window.fetch; window.fetch = (at, options) =>
		at === 'whoami' && window.whoami++ === 0 ? Promise.reject(new TypeError('offline')) : real(at, options)`)
	p.Do(`new MutationObserver(() => { window.both ||= document.querySelectorAll('#sign-in').length > 1 })
		.observe(document.body, { childList: true })`)
	cluster.Account(t, s.namespace, "someone")
	enter := func() {
		p.Do("document.querySelector('#sign-in details').open = true")
		p.Type("#sign-in input[type=password]", cluster.Token(t, s.namespace, "someone"))
		p.Key("Enter")
	}
	enter()
	p.Sees("#sign-in", "It is not known whose token this is: the server cannot be reached.")
	p.Until("the first dialog left before the second came", "!window.both")
	enter()
	p.Until("the page has reloaded", "!window.old && document.getElementById('sign-in')")
	p.Until("no draft is left", "!Object.keys(sessionStorage).some((key) => key.startsWith('parley.draft.'))")
}

// enterAtProvider signs in on the provider's page.
func enterAtProvider(p *browser.Page, user string) {
	p.Sees("label", "Username")
	p.Type("#username", user)
	p.Type("#password", "verysecure")
	p.Key("Enter")
}

// newChat creates a chat of this name on the page.
func newChat(p *browser.Page, name string) {
	p.Click("button", "New chat")
	p.Type("dialog textarea", "Say hello")
	p.Type("dialog input[maxlength='200']", name)
	p.Click("dialog button", "Begin")
}
