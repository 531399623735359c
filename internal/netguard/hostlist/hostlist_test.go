// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package hostlist_test

import (
	"net/url"
	"testing"

	"parley.dev/parley/internal/netguard/hostlist"
	"parley.dev/parley/test/kit/check"
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
		check.Equal(t, raw, want, list.Names(parse(t, raw)))
	}
}

func TestForbiddenAddressesAreKnownInEveryForm(t *testing.T) {
	const never, pod, allowed = "never", "the pod itself", ""
	for raw, want := range map[string]string{
		"http://169.254.169.254/latest": never, "http://[::ffff:169.254.169.254]/": never, "http://[fe80::1%25eth0]/": never,
		"http://[fd00:ec2::254]/": never, "http://168.63.129.16:80/": never,
		"http://127.0.0.1:11434/": pod, "http://127.8.8.8/": pod, "http://[::1]/": pod, "http://[::ffff:127.0.0.1]/": pod,
		"http://0.0.0.0:80/": pod, "http://[::]/": pod, "http://localhost:11434/": pod, "http://LocalHost./": pod,
		"http://a.localhost/": pod,
		"http://10.0.0.1/":    allowed, "http://metadata.google.internal/": allowed, "https://api.openai.com/v1": allowed,
		"http://localhost.example.com/": allowed,
	} {
		strict, lenient := hostlist.ForbiddenAddress(parse(t, raw), false), hostlist.ForbiddenAddress(parse(t, raw), true)
		if strict != (want != allowed) || lenient != (want == never) {
			t.Errorf("%s: forbidden %t, and %t where loopback is allowed", raw, strict, lenient)
		}
	}
}

func TestAddressesInOtherNotationsAreAmbiguous(t *testing.T) {
	for raw, want := range map[string]bool{
		"http://2852039166/": true, "http://0xA9FEA9FE/": true, "http://0251.0376.0251.0376/": true,
		"http://169.254.43518/": true, "http://127.1/": true, "http://169.254.169.254.:80/": false,
		"http://10.0.0.1/": false, "http://[fe80::1]/": false, "http://models.example.com/": false,
		"http://gpu1.models:80/": false, "http://ollama/": false, "http://0xcafe.example/": false,
	} {
		check.Equal(t, raw, want, hostlist.AmbiguousAddress(parse(t, raw)))
	}
}

func parse(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	check.OK(t, err)
	return u
}
