// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package token reads the claims of bearer tokens. It proves no claim, and links the standard library only.
package token

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Audience is the audience of a token that is valid for the gateway only, and not for the API server.
const Audience = "parley-gateway"

// NotJWT begins the refusal of a token that is no JSON web token.
const NotJWT = "the token is no JSON web token"

// MaxBytes is the length of the longest token that is read. Those of service accounts have about 1 KiB, and those of
// identity providers with a user's groups more.
const MaxBytes = 16 << 10

// Claims are the claims of a JSON web token that the gateway uses.
type Claims struct {
	// Audiences that the token is for.
	Audiences []string
	// Expires is when it expires; zero if it has no such claim.
	Expires time.Time
}

// For reports whether the token claims to be for an audience.
func (c Claims) For(audience string) bool {
	return slices.Contains(c.Audiences, audience)
}

// Read reads the claims of a signed JSON web token in its compact form, without verifying it. It is false for other
// texts.
func Read(token string) (Claims, bool) {
	segments := strings.SplitN(token, ".", 4)
	if len(token) > MaxBytes || len(segments) != 3 || segments[2] == "" {
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

// maxSeconds is the last accepted time in Unix seconds: the end of the year 9999.
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
