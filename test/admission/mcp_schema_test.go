// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/mcp/reference"
)

// server is an entry of mcpServers, changed.
func server(change ...func(*v1alpha1.MCPServer)) []v1alpha1.MCPServer {
	s := v1alpha1.MCPServer{Name: "github", URL: "https://mcp.example.com/mcp?toolsets=all"}
	for _, c := range change {
		c(&s)
	}
	return []v1alpha1.MCPServer{s}
}

func called(name string) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) { s.Name = name }
}

func at(url string) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) { s.URL = url }
}

// withHeaders sends headers: names, each with its value.
func withHeaders(headers ...string) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) {
		for i := 0; i < len(headers); i += 2 {
			s.Headers = append(s.Headers, v1alpha1.MCPHeader{Name: headers[i], Value: headers[i+1]})
		}
	}
}

func approving(patterns ...string) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) { s.RequireApproval = patterns }
}

// secret sends headers whose values are in Secrets: the names of header, Secret and key.
func secret(headers ...string) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) {
		for i := 0; i < len(headers); i += 3 {
			s.HeadersFrom = append(s.HeadersFrom, v1alpha1.MCPHeaderSource{Name: headers[i], Prefix: "Bearer ",
				SecretKeyRef: v1alpha1.SecretKeyReference{Name: headers[i+1], Key: headers[i+2]}})
		}
	}
}

func patient(call, connect int32) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) { s.TimeoutSeconds, s.ConnectTimeoutSeconds = &call, &connect }
}

// refers names an object in place of the url.
func refers(group, kind, name string) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) {
		s.URL, s.ServerRef = "", &v1alpha1.MCPServerReference{Group: group, Kind: kind, Name: name}
	}
}

// runs names a command in place of the url, and variables of its environment.
func runs(command []string, env ...v1alpha1.MCPVariable) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) { s.URL, s.Command, s.Env = "", command, env }
}

// behind names port and path of the object.
func behind(port int32, path string) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) { s.ServerRef.Port, s.ServerRef.Path = &port, path }
}

// numbered are so many servers.
func numbered(n int) (servers []v1alpha1.MCPServer) {
	for i := range n {
		servers = append(servers, server(called(fmt.Sprint("s", i)))...)
	}
	return servers
}

func TestInvalidMCPServerErrorNamesFieldAndAdvice(t *testing.T) {
	t.Parallel()
	const belongs = "belongs to HTTP or to the protocol: leave it out"
	const one = "set exactly one of url, serverRef and command"
	const spoken = "a command is spoken to by its standard input and output"
	npx := []string{"npx", "-y", "@modelcontextprotocol/server-memory"}
	both := func(s *v1alpha1.MCPServer) { s.Command = npx }
	sse := func(s *v1alpha1.MCPServer) { s.Transport = v1alpha1.MCPSSE }
	variable := func(s *v1alpha1.MCPServer) { s.Env = []v1alpha1.MCPVariable{{Name: "A", Value: "b"}} }
	for name, c := range map[string]struct {
		servers []v1alpha1.MCPServer
		says    string
	}{
		"without a url": {server(at("")), one},
		"a url and a reference": {server(refers("", "Service", "a"), at("http://a.example.com")),
			one},
		"a url and a command":         {server(runs(npx), at("http://a.example.com")), one},
		"a reference and a command":   {server(refers("", "Service", "a"), both), one},
		"a command with a header":     {server(runs(npx), withHeaders("X-A", "1")), spoken},
		"a command with a token":      {server(runs(npx), secret("Authorization", "a", "b")), spoken},
		"a command with a transport":  {server(runs(npx), sse), spoken},
		"a command without a program": {server(runs([]string{"", "a"})), "the first word, the program, is empty"},
		"a command of 65 words":       {server(runs(slices.Repeat(npx, 22))), "must have at most 64 items"},
		"variables of a url":          {server(variable), "env is for a command"},
		"a variable that is none":     {server(runs(npx, v1alpha1.MCPVariable{Name: "A=B", Value: "c"})), "env[0].name"},
		"a variable twice": {server(runs(npx, v1alpha1.MCPVariable{Name: "A", Value: "b"},
			v1alpha1.MCPVariable{Name: "A", Value: "c"})), "Duplicate value"},
		"a kind that nobody knows":   {server(refers("example.com", "Server", "a")), "Parley does not know this kind"},
		"a kind of another group":    {server(refers("kagent.dev", "MCPRemoteProxy", "a")), "does not know this kind"},
		"a reference that is a path": {server(refers("", "Service", "../a")), "serverRef.name"},
		"a reference to nothing":     {server(refers("", "Service", "")), "serverRef.name"},
		"a port of a kind that says it": {server(refers("kagent.dev", "MCPServer", "a"), behind(1, "")),
			"port and path are for a Service"},
		"a port that is none": {server(refers("", "Service", "a"), behind(0, "/mcp")), "serverRef.port"},
		"a path that leads elsewhere": {server(refers("", "Service", "a"), behind(1, "@evil.example.com/")),
			"serverRef.path"},
		"a path with a fragment":          {server(refers("", "Service", "a"), behind(1, "/a#b")), "serverRef.path"},
		"a url of another scheme":         {server(at("ftp://mcp.example.com")), "mcpServers[0].url"},
		"a url that is a file":            {server(at("file:///etc/passwd")), "mcpServers[0].url"},
		"a url with a password":           {server(at("https://me:secret@mcp.example.com/")), "mcpServers[0].url"},
		"a url with a fragment":           {server(at("https://mcp.example.com/#a")), "mcpServers[0].url"},
		"a url with a line break":         {server(at("https://mcp.example.com/\nx")), "mcpServers[0].url"},
		"a name with the separator":       {server(called("a__b")), "mcpServers[0].name"},
		"a name in capitals":              {server(called("GitHub")), "mcpServers[0].name"},
		"a long name":                     {server(called(strings.Repeat("a", 33))), "mcpServers[0].name"},
		"two of the same name":            {append(server(), server()...), "Duplicate value"},
		"17 servers":                      {numbered(17), "must have at most 16 items"},
		"a header of HTTP":                {server(withHeaders("Host", "evil.example.com")), belongs},
		"a header of the protocol":        {server(withHeaders("mcp-Session-Id", "1")), belongs},
		"a header of a proxy":             {server(withHeaders("Proxy-Authorization", "1")), belongs},
		"a header with a line break":      {server(withHeaders("X-A", "1\r\nHost: evil")), "headers[0].value"},
		"a header's name with a colon":    {server(withHeaders("X-A:", "1")), "headers[0].name"},
		"a header twice, in another case": {server(withHeaders("X-A", "1", "x-a", "2")), "each header can be given once"},
		"a header in two places": {server(withHeaders("authorization", "1"), secret("Authorization", "a", "b")),
			"each header can be given once"},
		"a Secret that is a path": {server(secret("Authorization", "../token", "b")), "secretKeyRef.name"},
		"a key that is a path":    {server(secret("Authorization", "a", "../b")), "secretKeyRef.key"},
		"a secret header of HTTP": {server(secret("Content-Type", "a", "b")), belongs},
		"5 headers of Secrets": {server(secret("A", "a", "a", "B", "a", "a", "C", "a", "a", "D", "a", "a", "E", "a", "a")),
			"must have at most 4 items"},
		"a pattern with a * in the middle":  {server(approving("get_*_all")), "requireApproval[0]"},
		"a pattern of nothing":              {server(approving("")), "requireApproval[0]"},
		"no time for a call":                {server(patient(0, 10)), "timeoutSeconds"},
		"more than an hour for a call":      {server(patient(3601, 10)), "timeoutSeconds"},
		"more than a minute to be met with": {server(patient(60, 61)), "connectTimeoutSeconds"},
	} {
		t.Run(name, func(t *testing.T) { checkServers(t, c.servers, c.says) })
	}
}

// checkServers checks whether the API server refuses a chat of the servers.
func checkServers(t *testing.T, servers []v1alpha1.MCPServer, words string) {
	t.Helper()
	chat := newChat(unique("chat"))
	chat.Spec.MCPServers = servers
	checkRefusal(t, dry().Create(t.Context(), chat), words)
}

func TestMCPServersAtTheBoundsAreTaken(t *testing.T) {
	t.Parallel()
	for name, servers := range map[string][]v1alpha1.MCPServer{
		"an address and a port":       server(at("http://10.0.0.7:3001/mcp")),
		"an address of IPv6":          server(at("http://[fd00::7]:3001/mcp")),
		"the longest name":            server(called(strings.Repeat("a", 32))),
		"16 servers":                  numbered(16),
		"headers":                     server(withHeaders("X-Tenant", "blue", "X-Empty", "")),
		"all tools require approval":  server(approving("*")),
		"an hour, and a minute":       server(patient(3600, 60)),
		"tools by the server's names": server(approving("files/read", "repo.get*")),
		"a token":                     server(secret("Authorization", "tracker", "token")),
		"a command":                   server(runs([]string{"npx", "-y", "server", ""}, v1alpha1.MCPVariable{Name: "A"})),
		"a Service":                   server(refers("", "Service", "a.b-c"), behind(65535, "/a/b?c=d")),
	} {
		t.Run(name, func(t *testing.T) { checkServers(t, servers, "") })
	}
}

func TestEverySupportedServerKindCanBeReferenced(t *testing.T) {
	t.Parallel()
	for _, kind := range reference.Kinds() {
		t.Run(kind.String(), func(t *testing.T) { checkServers(t, server(refers(kind.Group, kind.Kind, "a")), "") })
	}
}
