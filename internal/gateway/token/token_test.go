// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func jwt(header, payload string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(header)) + "." + encode([]byte(payload)) + ".c2lnbmF0dXJl"
}

func TestATokenIsReadForWhatItClaims(t *testing.T) {
	tests := map[string]struct {
		payload string
		want    Claims
	}{
		"several audiences": {`{"aud":["https://api","parley-gateway"],"exp":1800000000}`,
			Claims{Audiences: []string{"https://api", Audience}, Expires: time.Unix(1800000000, 0)}},
		"one audience": {`{"aud":"kubernetes","exp":1.8e9}`,
			Claims{Audiences: []string{"kubernetes"}, Expires: time.Unix(1800000000, 0)}},
		"neither":      {`{"sub":"somebody"}`, Claims{}},
		"no such time": {`{"exp":1e300}`, Claims{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := Read(jwt(`{"alg":"RS256"}`, tt.payload))
			if diff := cmp.Diff(tt.want, got); !ok || diff != "" {
				t.Errorf("read %v (-want +got):\n%s", ok, diff)
			}
			if got.For(Audience) != (name == "several audiences") || got.For("") {
				t.Errorf("audiences %v", got.Audiences)
			}
		})
	}
}

func TestWhatIsNoWebTokenIsNotRead(t *testing.T) {
	whole := jwt(`{"alg":"RS256"}`, `{"aud":"parley-gateway"}`)
	for name, token := range map[string]string{
		"nothing":            "",
		"a word":             "nonsense",
		"dots":               "..",
		"no signature":       strings.TrimSuffix(whole, "c2lnbmF0dXJl"),
		"too many segments":  whole + ".more",
		"no base64":          "e30.!!!!.c2ln",
		"no algorithm":       jwt(`{}`, `{}`),
		"no object":          jwt(`{"alg":"RS256"}`, `"claims"`),
		"audiences of sorts": jwt(`{"alg":"RS256"}`, `{"aud":7}`),
		"too long":           jwt(`{"alg":"RS256"}`, `{"x":"`+strings.Repeat("x", MaxBytes)+`"}`),
	} {
		if claims, ok := Read(token); ok {
			t.Errorf("%s was read as %+v", name, claims)
		}
	}
}
