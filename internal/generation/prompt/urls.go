// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
)

// MaxFileURLs is how many files a provider is asked to fetch itself for one prompt, the newest ones: as many images as
// Azure takes with one request, the least of those that document a number.
const MaxFileURLs = 10

// fileURLKey is where a FileURL is in the options of a part.
const fileURLKey = "parley"

// FileURL is where a provider may fetch a file itself. It stands in the options of a fantasy.FilePart without data,
// because fantasy has no part for a URL. A protocol writes it into its request.
type FileURL struct {
	// URL is public, and as the message has it.
	URL string
}

// Options implements fantasy.ProviderOptionsData.
func (*FileURL) Options() {}

// MarshalJSON implements json.Marshaler.
func (f *FileURL) MarshalJSON() ([]byte, error) { return json.Marshal(f.URL) }

// UnmarshalJSON implements json.Unmarshaler.
func (f *FileURL) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &f.URL) }

// URLOf is the URL of a part that is a file for the provider to fetch.
func URLOf(part fantasy.MessagePart) (file fantasy.FilePart, from string, ok bool) {
	if file, ok = part.(fantasy.FilePart); !ok {
		return file, "", false
	}
	at, ok := file.ProviderOptions[fileURLKey].(*FileURL)
	if !ok {
		return file, "", false
	}
	return file, at.URL, true
}

func handed(file *v1alpha1.MessageFile, from string) fantasy.FilePart {
	return fantasy.FilePart{
		Filename: clean(file.Name), MediaType: file.MediaType,
		ProviderOptions: fantasy.ProviderOptions{fileURLKey: &FileURL{URL: from}},
	}
}

// PublicURL reports whether somebody outside of the cluster and its network may be sent to a URL: it is https, names no
// user, and its host is neither an address nor a name of a private network. It is told by the URL alone, so that it is
// the same each time; a public name can still lead to a private address.
func PublicURL(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Opaque != "" {
		return false
	}
	host := u.Hostname()
	if address, err := netip.ParseAddr(host); err == nil {
		return publicAddress(address)
	}
	return publicName(strings.ToLower(strings.TrimSuffix(host, ".")))
}

// privatePrefixes are what netip does not know as private: what the registries of special-purpose addresses of IANA
// (RFC 6890) call not globally reachable, and IPv6 that stands for IPv4.
var privatePrefixes = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

func publicAddress(address netip.Addr) bool {
	if address.Zone() != "" {
		return false
	}
	address = address.Unmap()
	return address.IsGlobalUnicast() && !address.IsPrivate() &&
		!slices.ContainsFunc(privatePrefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}

// privateNames are domains of private networks: RFC 6761, 6762 with its appendix G,
// 8375, and what ICANN keeps for them.
var privateNames = []string{
	"localhost", "local", "localdomain", "internal", "intranet", "private", "corp", "home", "lan", "svc", "test",
	"invalid", "onion", "arpa",
}

// publicName wants a name of several labels, in the letters that names have on the wire, whose last one is no number:
// who reads numbers generously takes 127.1 or 0x7f.1 for an address.
func publicName(host string) bool {
	labels := strings.Split(host, ".")
	// Services and pods of a cluster, whatever its domain is: name.namespace.svc.cluster.local.
	if len(labels) > 3 && (labels[2] == "svc" || labels[2] == "pod") {
		return false
	}
	return len(host) <= 253 && nameForm.MatchString(host) && !slices.Contains(privateNames, labels[len(labels)-1])
}

var nameForm = regexp.MustCompile(`^(?:[a-z0-9_-]+\.)+[a-z][a-z0-9-]*$`)
