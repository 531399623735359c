// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package token knows of the bearer tokens that callers show to the gateway what can be known without asking anybody:
// what a token claims to be. Nothing here proves a claim. It links the standard library alone.
package token

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Audience is the audience of a token that is good for the gateway and for nothing else:
// the API server does not take it.
const Audience = "parley-gateway"

// MaxBytes is the length of the longest token that is looked at. Those of service accounts have about 1 KiB, those of
// identity providers that list a user's groups some more.
const MaxBytes = 16 << 10

// Claims are what a JSON web token claims, as far as the gateway wants to know.
type Claims struct {
	// Audiences that the token is for.
	Audiences []string
	// Expires is when it ceases to be good; zero if it does not say.
	Expires time.Time
}

// For reports whether the token claims to be for an audience.
func (c Claims) For(audience string) bool {
	return slices.Contains(c.Audiences, audience)
}

// Read reads the claims of a signed JSON web token in its compact form, unproven. It reports false for what is none.
func Read(token string) (Claims, bool) {
	segments := strings.SplitN(clip(token), ".", 4)
	if len(segments) != 3 || segments[2] == "" {
		return Claims{}, false
	}
	var algorithm struct {
		Name string `json:"alg"`
	}
	if !decode(segments[0], &algorithm) || algorithm.Name == "" {
		return Claims{}, false
	}
	var claims struct {
		Audience audiences `json:"aud"`
		Expires  *float64  `json:"exp"`
	}
	if !decode(segments[1], &claims) {
		return Claims{}, false
	}
	read := Claims{Audiences: claims.Audience}
	if e := claims.Expires; e != nil && *e > 0 && *e < maxSeconds {
		read.Expires = time.Unix(int64(*e), 0)
	}
	return read, true
}

// clip is a token that is not too long, or nothing.
func clip(token string) string {
	if len(token) > MaxBytes {
		return ""
	}
	return token
}

// maxSeconds is the last moment that is taken for one, in Unix seconds: the end of the year 9999.
const maxSeconds = 253402300799

func decode(segment string, into any) bool {
	data, err := base64.RawURLEncoding.DecodeString(segment)
	return err == nil && json.Unmarshal(data, into) == nil
}

// audiences are one or several.
type audiences []string

func (a *audiences) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}
