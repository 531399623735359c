// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostlist says to which hosts generation pods may connect. It is pure: it resolves no names.
package hostlist

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// List are hosts such as models.example.com, models.example.com:8443 or *.example.com, as an administrator writes them.
// One without a port stands for the scheme's own.
type List []string

// Names reports whether the list names the host of an http or https URL.
func (l List) Names(target *url.URL) bool {
	if target.Scheme != "https" && target.Scheme != "http" {
		return false
	}
	host := strings.ToLower(target.Host)
	for _, listed := range l {
		listed = strings.ToLower(listed)
		if domain, ok := strings.CutPrefix(listed, "*."); ok && strings.HasSuffix(host, "."+domain) || host == listed {
			return true
		}
	}
	return false
}

// metadata are the addresses, in addition to link-local ones, at which clouds serve a node's credentials to its
// processes: AWS and Google by IPv6, Alibaba, Azure, and Oracle.
var metadata = map[netip.Addr]bool{
	netip.MustParseAddr("fd00:ec2::254"): true, netip.MustParseAddr("fd20:ce::254"): true,
	netip.MustParseAddr("100.100.100.200"): true,
	netip.MustParseAddr("168.63.129.16"):   true, netip.MustParseAddr("192.0.0.192"): true,
}

// OfTheNode reports whether the address belongs to the node or to its cloud: link-local ones and those of metadata
// services. No list names these.
func OfTheNode(address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	return address.IsLinkLocalUnicast() || metadata[address]
}

// OfThePod reports whether the address belongs to the pod that calls it: loopback, and those that stand for it.
func OfThePod(address netip.Addr) bool {
	address = address.Unmap()
	return address.IsLoopback() || address.IsUnspecified()
}

// ForbiddenAddress reports whether the host of a URL is an address that is never called, or one of the pod unless
// loopback allows those. It resolves no names but localhost.
func ForbiddenAddress(target *url.URL, loopback bool) bool {
	name := strings.ToLower(strings.TrimSuffix(target.Hostname(), "."))
	address, err := netip.ParseAddr(name)
	if err != nil {
		return !loopback && (name == "localhost" || strings.HasSuffix(name, ".localhost"))
	}
	return OfTheNode(address) || !loopback && OfThePod(address)
}

// octet is the last part of an address that some programs read in other notations than ours: as one number, in octal or
// in hexadecimal.
var octet = regexp.MustCompile(`^([0-9]+|0[xX][0-9a-fA-F]*)$`)

// AmbiguousAddress reports whether the host of a URL is no address in the usual notation, but may be one to a proxy:
// its last part is a number, which no name of the DNS ends in.
func AmbiguousAddress(target *url.URL) bool {
	name := strings.TrimSuffix(target.Hostname(), ".")
	if _, err := netip.ParseAddr(name); err == nil {
		return false
	}
	return octet.MatchString(name[strings.LastIndex(name, ".")+1:])
}
