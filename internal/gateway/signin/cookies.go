// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Names of the cookies. With the prefix a browser takes them only from this host over TLS, so their path is "/".
// They are also the purposes that their values are sealed for.
const (
	sessionCookie = "__Host-parley-session"
	flowCookie    = "__Host-parley-login"
)

const (
	// pieceBytes is the size of one cookie's value: browsers keep 4 KiB with name and attributes.
	pieceBytes = 3800
	// maxPieces is how many cookies a session has. Proxies commonly refuse headers of more than 8 KiB to 16 KiB.
	maxPieces = 4
)

// session is what a browser keeps of a person who has signed in.
type session struct {
	IDToken      string `json:"id"`
	RefreshToken string `json:"refresh,omitempty"`
}

// flow is what a browser keeps while a person signs in.
type flow struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	At       string    `json:"at"`
	Expires  time.Time `json:"expires"`
}

// keep sends a session to the browser, in as many cookies as it needs. It fails if that is more than maxPieces.
func (s *SignIn) keep(w http.ResponseWriter, kept session) error {
	text := s.options.Keys.seal(sessionCookie, kept)
	if len(text) > maxPieces*pieceBytes {
		return fmt.Errorf("the tokens of the identity provider need %d bytes of cookies, and at most %d are kept: "+
			"have it put fewer groups and claims into ID tokens", len(text), maxPieces*pieceBytes)
	}
	dropFrom(w, (len(text)+pieceBytes-1)/pieceBytes)
	for i := 0; text != ""; i++ {
		n := min(len(text), pieceBytes)
		http.SetCookie(w, cookie(piece(i), text[:n], http.SameSiteStrictMode, 0))
		text = text[n:]
	}
	return nil
}

// kept is the session of the browser; false if it has none that this gateway can open.
func (s *SignIn) kept(r *http.Request) (found session, ok bool) {
	var text strings.Builder
	for i := range maxPieces {
		c, err := r.Cookie(piece(i))
		if err != nil {
			break
		}
		text.WriteString(c.Value)
	}
	return found, s.options.Keys.open(sessionCookie, text.String(), &found)
}

// dropFrom has the browser forget the pieces of a session from the nth on. The request does not say which it has: on
// the way back from the provider, it comes from another site.
func dropFrom(w http.ResponseWriter, n int) {
	for i := n; i < maxPieces; i++ {
		http.SetCookie(w, cookie(piece(i), "", http.SameSiteStrictMode, -1))
	}
}

func piece(i int) string { return sessionCookie + "-" + strconv.Itoa(i) }

func cookie(name, value string, site http.SameSite, maxAge int) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: site, MaxAge: maxAge}
}
