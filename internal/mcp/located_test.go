// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/netguard/hostlist"
)

func TestServerReferenceIsCalledAtResolvedAddress(t *testing.T) {
	s := newServer()
	tool(s, "look", says("seen"))
	known := serve(t, stateless(s)).URL
	to := func(name string) v1alpha1.MCPServerReference {
		return v1alpha1.MCPServerReference{Group: "mcp.x-k8s.io", Kind: "MCPServer", Name: name}
	}
	entry := v1alpha1.MCPServer{Name: "s", ServerRef: new(to("a"))}
	for name, c := range map[string]struct {
		told   []v1alpha1.MCPServerAddress
		hosts  hostlist.List
		reason v1alpha1.MCPServerReason
		says   string
	}{
		"its address": {told: []v1alpha1.MCPServerAddress{{Name: "s", Ref: to("a"), URL: known}}},
		"what it referred to before": {told: []v1alpha1.MCPServerAddress{{Name: "s", Ref: to("b"), URL: known}},
			reason: v1alpha1.MCPNotReady, says: "its address is looked up before the next step"},
		"that of another entry": {told: []v1alpha1.MCPServerAddress{{Name: "t", Ref: to("a"), URL: known}},
			reason: v1alpha1.MCPNotReady, says: "its address is looked up before the next step"},
		"none": {told: []v1alpha1.MCPServerAddress{{Name: "s", Ref: to("a"), Reason: v1alpha1.MCPReferenceNotFound,
			Message: "MCPServer a: there is none in the namespace"}},
			reason: v1alpha1.MCPReferenceNotFound, says: "MCPServer a: there is none in the namespace"},
		"a host that is not allowed": {told: []v1alpha1.MCPServerAddress{{Name: "s", Ref: to("a"), URL: known}},
			hosts: hostlist.List{"mcp.example.com"}, reason: v1alpha1.MCPHostForbidden},
		"where clouds serve credentials": {told: []v1alpha1.MCPServerAddress{
			{Name: "s", Ref: to("a"), URL: "http://169.254.169.254/mcp"}}, reason: v1alpha1.MCPHostForbidden},
		"no url at all": {told: []v1alpha1.MCPServerAddress{{Name: "s", Ref: to("a"), URL: "http://me:secret@a/"}},
			reason: v1alpha1.MCPConnectionFailed, says: "its url is not valid"},
	} {
		servers, _ := newServers(t, func(o *mcp.Options) { o.Hosts = c.hosts })
		o := servers.Offer(t.Context(), []v1alpha1.MCPServer{entry}, mcp.Places{Told: c.told})
		unavailable := o.Unavailable()
		switch {
		case c.reason == "" && (len(unavailable) > 0 || run(t, o, "s__look", "{}").output != "seen"):
			t.Errorf("%s: %+v", name, unavailable)
		case c.reason != "" && (len(unavailable) != 1 || unavailable[0].Reason != c.reason ||
			c.says != "" && unavailable[0].Message != c.says):
			t.Errorf("%s: %+v", name, unavailable)
		}
		o.Close()
	}
}
