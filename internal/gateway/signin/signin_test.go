// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/test/kit/check"
)

func keyOf(letter string) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, keyBytes)))
}

func keys(t *testing.T, letters string) Keys {
	t.Helper()
	var text strings.Builder
	for letter := range strings.SplitSeq(letters, "") {
		text.WriteString(keyOf(letter) + "\n")
	}
	parsed, err := ParseKeys(text.String())
	check.OK(t, err)
	return parsed
}

func TestKeysOpenWhatOneOfThemSealed(t *testing.T) {
	sealed := keys(t, "a").seal(sessionCookie, session{IDToken: "id"})
	for letters, want := range map[string]bool{"a": true, "ba": true, "b": false} {
		var got session
		if ok := keys(t, letters).open(sessionCookie, sealed, &got); ok != want || (got.IDToken == "id") != want {
			t.Errorf("the keys %s open it: %v, %+v", letters, ok, got)
		}
	}
}

func TestForgedCookiesAreNotOpened(t *testing.T) {
	k := keys(t, "a")
	sealed := k.seal(sessionCookie, session{IDToken: "id"})
	for name, text := range map[string]string{"empty": "", "no base64": "!", "short": "AA", "cut": sealed[:len(sealed)-4],
		"changed": "A" + sealed[1:], "of a sign-in": k.seal(flowCookie, session{IDToken: "id"})} {
		if text != sealed && k.open(sessionCookie, text, new(session)) {
			t.Errorf("%s was opened", name)
		}
	}
}

func TestUnusableKeysAreRefused(t *testing.T) {
	for _, text := range []string{"", "\n", "short", keyOf("a") + "\n" + keyOf("b")[4:]} {
		if _, err := ParseKeys(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// roundTrip is the session that a browser, which had some cookies, sends back. The request that it is kept with comes
// from the provider's site, and has none.
func roundTrip(t *testing.T, s *SignIn, had []*http.Cookie, kept session) ([]*http.Cookie, session, bool) {
	t.Helper()
	jar := map[string]*http.Cookie{}
	for _, c := range had {
		jar[c.Name] = c
	}
	w := httptest.NewRecorder()
	check.OK(t, s.keep(w, kept))
	again := httptest.NewRequest(http.MethodGet, "/ui/whoami", nil)
	for _, c := range w.Result().Cookies() {
		if !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || len(c.String()) > 4096 {
			t.Errorf("a browser would not keep the cookie %s of %d bytes safely", c.Name, len(c.String()))
		}
		if jar[c.Name] = c; c.MaxAge < 0 {
			delete(jar, c.Name)
		}
	}
	var have []*http.Cookie
	for _, c := range jar {
		again.AddCookie(c)
		have = append(have, c)
	}
	got, ok := s.kept(again)
	return have, got, ok
}

func TestLargeSessionIsSplitOverCookies(t *testing.T) {
	s := &SignIn{options: Options{Keys: keys(t, "a"), Now: time.Now}}
	var have []*http.Cookie
	for _, size := range []int{100, 9000, 5000, 100} {
		want := session{IDToken: strings.Repeat("i", size), RefreshToken: "r"}
		var got session
		var ok bool
		if have, got, ok = roundTrip(t, s, have, want); !ok || got != want {
			t.Errorf("the session of %d bytes came back: %v, %d bytes in %d cookies", size, ok, len(got.IDToken), len(have))
		}
	}
	if len(have) != 1 {
		t.Errorf("a small session has %d cookies", len(have))
	}
	err := s.keep(httptest.NewRecorder(), session{IDToken: strings.Repeat("i", maxPieces*pieceBytes)})
	if err == nil || !strings.Contains(err.Error(), "fewer groups") {
		t.Errorf("a session that does not fit: %v", err)
	}
}

func TestUnusableOptionsAreRefused(t *testing.T) {
	for redirect, client := range map[string]string{"http://chat.example/ui/callback": "page",
		"https://chat.example/callback": "page", "https://chat.example/ui/callback": "parley-gateway"} {
		if _, err := New(Options{RedirectURL: redirect, ClientID: client}); err == nil {
			t.Errorf("%s for the client %s was accepted", redirect, client)
		}
	}
}
