// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval/toolpolicy"
)

// bindServers lets the rules of a class for the tools of an MCP server that it lists hold for every server at the same
// address, whatever name a chat gives it.
func bindServers(s *v1beta1.ChatSettings, class *v1beta1.ChatClassSpec) {
	if class.Restrictions == nil || class.Restrictions.Tools == nil {
		return
	}
	rules := class.Restrictions.Tools
	for i := range class.Defaults.MCPServers {
		own := &class.Defaults.MCPServers[i]
		for j := range s.MCPServers {
			if other := &s.MCPServers[j]; other.Name != own.Name && sameServer(own, other) {
				s.Tools = bounded(s.Tools, v1beta1.ToolPolicy{Deny: renamed(rules.Deny, own.Name, other.Name),
					Approval: renamed(rules.Approval, own.Name, other.Name)})
			}
		}
	}
}

// renamed are the patterns that match tools of one server, for the same tools of a server of another name.
func renamed(patterns []v1beta1.ToolPattern, from, to string) (all []v1beta1.ToolPattern) {
	own, other := from+toolpolicy.ServerSeparator, to+toolpolicy.ServerSeparator
	for _, p := range patterns {
		tool, found := strings.CutPrefix(string(p), own)
		switch {
		case found:
			all = append(all, v1beta1.ToolPattern(other+tool))
		case strings.HasSuffix(string(p), "*") && toolpolicy.Matches([]v1beta1.ToolPattern{p}, own):
			all = append(all, v1beta1.ToolPattern(other+"*"))
		}
	}
	return all
}

// sameServer reports whether two entries lead to the same server.
func sameServer(a, b *v1beta1.MCPServer) bool {
	switch {
	case a.URL != "":
		return address(a.URL) == address(b.URL)
	case a.ServerRef != nil:
		return b.ServerRef != nil && sameReference(a.ServerRef, b.ServerRef)
	}
	return len(a.Command) > 0 && slices.Equal(a.Command, b.Command)
}

// sameReference reports whether two references may lead to the same server. A port or a path that one of them leaves to
// the default may be the other one's.
func sameReference(a, b *v1beta1.MCPServerReference) bool {
	ports := a.Port == nil || b.Port == nil || *a.Port == *b.Port
	paths := a.Path == "" || b.Path == "" || address(a.Path) == address(b.Path)
	return a.Group == b.Group && a.Kind == b.Kind && a.Name == b.Name && ports && paths
}

// address is the host, port and path of a URL, in one form of several that mean the same.
func address(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	host = strings.TrimSuffix(host, ".cluster.local")
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return host + ":" + port + path.Clean("/"+u.Path)
}
