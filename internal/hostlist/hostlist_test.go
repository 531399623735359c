// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package hostlist_test

import (
	"net/url"
	"testing"

	"parley.dev/parley/internal/hostlist"
)

func TestHostsAreNamedByNameAndPort(t *testing.T) {
	list := hostlist.List{"models.example.com", "models.example.com:8443", "*.example.org", "ollama.models:11434"}
	for raw, want := range map[string]bool{
		"https://models.example.com/v1": true, "https://MODELS.example.com/v1": true,
		"https://models.example.com:8443/v1": true, "https://models.example.com:9/v1": false,
		"https://example.com/v1": false, "https://models.example.com.evil.net/v1": false, "https://a.example.org/v1": true,
		"https://a.b.example.org": true,
		"https://example.org/v1":  false, "https://evilexample.org/v1": false, "ftp://models.example.com/v1": false,
		"http://ollama.models:11434/v1":          true,
		"https://models.example.com@evil.net/v1": false, "https://evil.net/models.example.com": false,
	} {
		if got := list.Names(parse(t, raw)); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}

func TestAddressesOfTheNodeAreKnownInEveryForm(t *testing.T) {
	for raw, want := range map[string]bool{
		"http://169.254.169.254/latest": true, "http://[::ffff:169.254.169.254]/": true, "http://[fe80::1%25eth0]/": true,
		"http://[fd00:ec2::254]/":  true,
		"http://168.63.129.16:80/": true, "http://10.0.0.1/": false, "http://127.0.0.1:11434/": false, "http://[::1]/": false,
		"http://metadata.google.internal/": false, "https://api.openai.com/v1": false,
	} {
		if got := hostlist.AddressOfTheNode(parse(t, raw)); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}

func parse(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
