// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/mcp/reference"
)

// source is what the chat's workspace is made from, changed.
func source(change ...func(*v1beta1.WorkspaceSource)) *v1beta1.WorkspaceSource {
	s := &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "go"}}
	for _, c := range change {
		c(s)
	}
	return s
}

func stored(size, class string) func(*v1beta1.WorkspaceSource) {
	return func(s *v1beta1.WorkspaceSource) {
		s.PodTemplateRef.Storage = &v1beta1.WorkspaceStorage{Size: size, StorageClassName: class}
	}
}

// with gives values for parameters: names, each with its value.
func with(values ...string) func(*v1beta1.WorkspaceSource) {
	return func(s *v1beta1.WorkspaceSource) {
		for i := 0; i < len(values); i += 2 {
			s.PodTemplateRef.Parameters = append(s.PodTemplateRef.Parameters,
				v1beta1.WorkspaceParameter{Name: values[i], Value: values[i+1]})
		}
	}
}

func kept(seconds int32) func(*v1beta1.WorkspaceSource) {
	return func(s *v1beta1.WorkspaceSource) { s.IdleSeconds = &seconds }
}

func deletion(policy v1beta1.WorkspaceDeletionPolicy) func(*v1beta1.WorkspaceSource) {
	return func(s *v1beta1.WorkspaceSource) { s.DeletionPolicy = policy }
}

func named(template string) func(*v1beta1.WorkspaceSource) {
	return func(s *v1beta1.WorkspaceSource) { s.PodTemplateRef.Name = template }
}

// pooled is a sandbox of the warm pool, and ofPod works in the pod.
func pooled(pool string) func(*v1beta1.WorkspaceSource) {
	return func(s *v1beta1.WorkspaceSource) { s.WarmPoolRef = &v1beta1.WarmPoolReference{Name: pool} }
}

func ofPod(pod string) func(*v1beta1.WorkspaceSource) {
	return func(s *v1beta1.WorkspaceSource) { s.PodRef = &v1beta1.WorkspacePodReference{Name: pod} }
}

// alone is a source without a template.
func alone(change ...func(*v1beta1.WorkspaceSource)) *v1beta1.WorkspaceSource {
	return source(append([]func(*v1beta1.WorkspaceSource){
		func(s *v1beta1.WorkspaceSource) { s.PodTemplateRef = nil }}, change...)...)
}

// many are values for so many parameters.
func many(n int) (values []string) {
	for i := range n {
		values = append(values, fmt.Sprint("p", i), "1")
	}
	return values
}

func TestInvalidWorkspaceIsRejectedWithFieldAndAdvice(t *testing.T) {
	t.Parallel()
	const noSize = "size is no quantity above 0, such as 10Gi"
	for name, c := range map[string]struct {
		source *v1beta1.WorkspaceSource
		says   string
	}{
		"made from nothing":              {&v1beta1.WorkspaceSource{}, "set podTemplateRef, which names the PodTemplate"},
		"of a template and a pool":       {source(pooled("a")), "one of podTemplateRef, "},
		"of a template and a pod":        {source(ofPod("a")), "one of podTemplateRef, "},
		"of a pool that is a path":       {alone(pooled("../a")), "warmPoolRef.name"},
		"of a pod that is a path":        {alone(ofPod("a/b")), "podRef.name"},
		"of a pod that is to stop":       {alone(ofPod("a"), kept(60)), "that of podRef is not Parley's"},
		"of a pod whose storage is kept": {alone(ofPod("a"), deletion("Retain")), "deletionPolicy is about storage"},
		"of a pool that keeps storage":   {alone(pooled("a"), deletion("Delete")), "deletionPolicy is about storage"},
		"a template without a name":      {source(named("")), "podTemplateRef.name"},
		"a template that is a path":      {source(named("../go")), "podTemplateRef.name"},
		"a template's long name":         {source(named(strings.Repeat("a", 254))), "podTemplateRef.name"},
		"a size of nothing":              {source(stored("0", "")), noSize},
		"a size of nothing, in Gi":       {source(stored("0Gi", "")), noSize},
		"a size below nothing":           {source(stored("-1Gi", "")), noSize},
		"a size that is a word":          {source(stored("lots", "")), noSize},
		"a size of another unit":         {source(stored("10GB", "")), noSize},
		"a size with a blank":            {source(stored("10 Gi", "")), noSize},
		"a size that is not a number":    {source(stored("NaN", "")), noSize},
		"a size of many digits":          {source(stored(strings.Repeat("1", 33), "")), "storage.size"},
		"a class of no name":             {source(stored("1Gi", "Fast_SSD")), "storage.storageClassName"},
		"a parameter without a name":     {source(with("", "1")), "parameters[0].name"},
		"a parameter's long name":        {source(with(strings.Repeat("a", 64), "1")), "parameters[0].name"},
		"a parameter of a digit":         {source(with("1a", "1")), "parameters[0].name"},
		"a parameter of a place":         {source(with("env/PATH", "1")), "parameters[0].name"},
		"a parameter's long value":       {source(with("a", strings.Repeat("a", 1025))), "parameters[0].value"},
		"a parameter twice":              {source(with("a", "1", "a", "2")), "Duplicate value"},
		"65 parameters":                  {source(with(many(65)...)), "must have at most 64 items"},
		"kept for less than no time":     {source(kept(-1)), "idleSeconds"},
		"kept for more than a week":      {source(kept(604801)), "idleSeconds"},
		"a deletion policy that is none": {source(deletion("Keep")), `"Retain"`},
	} {
		t.Run(name, func(t *testing.T) { checkSource(t, c.source, c.says) })
	}
}

// checkSource checks whether the API server refuses a chat and a workspace of the source.
func checkSource(t *testing.T, source *v1beta1.WorkspaceSource, words string) {
	t.Helper()
	chat, w := newChat(unique("chat")), workspace()
	chat.Spec.Workspace, w.Spec.Source = source, *source
	for _, o := range []client.Object{chat, w} {
		checkRefusal(t, dry().Create(t.Context(), o), words)
	}
}

func TestAWorkspaceAtTheBoundsIsTaken(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*v1beta1.WorkspaceSource{
		"of the longest names": source(named(strings.Repeat("a", 253)), stored("1", strings.Repeat("b", 253)),
			with(strings.Repeat("p", 63), strings.Repeat("é", 1024))),
		"of a fraction":                 source(stored("0.5Gi", "")),
		"of the default size":           source(stored("", "")),
		"of 64 parameters":              source(with(many(64)...)),
		"of values that are not simple": source(with("a", "", "B-1_c", "$(X) \"y\" 'z' \\ \n- {a: [b]} # é 🙂")),
		"never stopped":                 source(kept(0)),
		"of a pool":                     alone(pooled(strings.Repeat("a", 253)), kept(60)),
		"of a pod":                      alone(ofPod(strings.Repeat("a", 253))),
		"kept for a week":               source(kept(604800)),
	} {
		t.Run(name, func(t *testing.T) { checkSource(t, s, "") })
	}
}

func TestAWorkspaceStaysWhatItIs(t *testing.T) {
	t.Parallel()
	const stays = "cannot move between a template, a pool and a pod"
	for name, c := range map[string]struct {
		was   *v1beta1.WorkspaceSource
		patch string
		says  string
	}{
		"another template":              {source(), `{"podTemplateRef":{"name":"rust"}}`, ""},
		"a pool in place of the other":  {source(), `{"podTemplateRef":null,"warmPoolRef":{"name":"a"}}`, stays},
		"a pod in place of a template":  {source(), `{"podTemplateRef":null,"podRef":{"name":"a"}}`, stays},
		"a template in place of a pool": {alone(pooled("a")), `{"warmPoolRef":null,"podTemplateRef":{"name":"a"}}`, stays},
		"a pod in place of a pool":      {alone(pooled("a")), `{"warmPoolRef":null,"podRef":{"name":"a"}}`, stays},
		"another pool":                  {alone(pooled("a")), `{"warmPoolRef":{"name":"b"}}`, stays},
		"the pool's idle time":          {alone(pooled("a")), `{"idleSeconds":7}`, ""},
		"another pod":                   {alone(ofPod("a")), `{"podRef":{"name":"b"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			chat, w := newChat(unique("chat")), workspace()
			chat.Spec.Workspace, w.Spec.Source = c.was, *c.was
			mustCreate(t, chatter, chat)
			mustCreate(t, manager, w)
			try(t, []write{
				{chatter, "changes the chat", patches(chat, `{"spec":{"workspace":`+c.patch+`}}`), c.says},
				{manager, "changes the workspace", patches(w, `{"spec":{"source":`+c.patch+`}}`), noRight},
				{root, "changes the workspace", patches(w, `{"spec":{"source":`+c.patch+`}}`), c.says},
			})
		})
	}
}

func TestASubChatNamesNoWorkspace(t *testing.T) {
	t.Parallel()
	const above = "a sub-chat shares the workspace of the chat above it: set workspace there"
	sub := subChat(unique("chat"), "root")
	mustCreate(t, chatter, sub)
	both := sub.DeepCopy()
	both.ObjectMeta, both.Spec.Workspace = meta("chat"), source()
	alone := newChat(unique("chat"))
	mustCreate(t, chatter, alone)
	const names = `{"spec":{"workspace":{"podTemplateRef":{"name":"go"}}}}`
	try(t, []write{
		{chatter, "creates one that does", creates(both), above},
		{chatter, "adds one later", patches(sub, names), above},
		{chatter, "adds one to a chat of its own", patches(alone, names), ""},
		{chatter, "takes it away", patches(alone, `{"spec":{"workspace":null}}`), ""},
	})
}

// server is an entry of mcpServers, changed.
func server(change ...func(*v1beta1.MCPServer)) []v1beta1.MCPServer {
	s := v1beta1.MCPServer{Name: "github", URL: "https://mcp.example.com/mcp?toolsets=all"}
	for _, c := range change {
		c(&s)
	}
	return []v1beta1.MCPServer{s}
}

func called(name string) func(*v1beta1.MCPServer) {
	return func(s *v1beta1.MCPServer) { s.Name = name }
}

func at(url string) func(*v1beta1.MCPServer) {
	return func(s *v1beta1.MCPServer) { s.URL = url }
}

// withHeaders sends headers: names, each with its value.
func withHeaders(headers ...string) func(*v1beta1.MCPServer) {
	return func(s *v1beta1.MCPServer) {
		for i := 0; i < len(headers); i += 2 {
			s.Headers = append(s.Headers, v1beta1.MCPHeader{Name: headers[i], Value: headers[i+1]})
		}
	}
}

func approving(patterns ...string) func(*v1beta1.MCPServer) {
	return func(s *v1beta1.MCPServer) { s.RequireApproval = patterns }
}

// secret sends headers whose values are in Secrets: the names of header, Secret and key.
func secret(headers ...string) func(*v1beta1.MCPServer) {
	return func(s *v1beta1.MCPServer) {
		for i := 0; i < len(headers); i += 3 {
			s.HeadersFrom = append(s.HeadersFrom, v1beta1.MCPHeaderSource{Name: headers[i], Prefix: "Bearer ",
				SecretKeyRef: v1beta1.SecretKeyReference{Name: headers[i+1], Key: headers[i+2]}})
		}
	}
}

func patient(call, connect int32) func(*v1beta1.MCPServer) {
	return func(s *v1beta1.MCPServer) { s.TimeoutSeconds, s.ConnectTimeoutSeconds = &call, &connect }
}

// refers names an object in place of the url.
func refers(group, kind, name string) func(*v1beta1.MCPServer) {
	return func(s *v1beta1.MCPServer) {
		s.URL, s.ServerRef = "", &v1beta1.MCPServerReference{Group: group, Kind: kind, Name: name}
	}
}

// runs names a command in place of the url, and variables of its environment.
func runs(command []string, env ...v1beta1.MCPVariable) func(*v1beta1.MCPServer) {
	return func(s *v1beta1.MCPServer) { s.URL, s.Command, s.Env = "", command, env }
}

// behind names port and path of the object.
func behind(port int32, path string) func(*v1beta1.MCPServer) {
	return func(s *v1beta1.MCPServer) { s.ServerRef.Port, s.ServerRef.Path = &port, path }
}

// numbered are so many servers.
func numbered(n int) (servers []v1beta1.MCPServer) {
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
	both := func(s *v1beta1.MCPServer) { s.Command = npx }
	sse := func(s *v1beta1.MCPServer) { s.Transport = v1beta1.MCPSSE }
	variable := func(s *v1beta1.MCPServer) { s.Env = []v1beta1.MCPVariable{{Name: "A", Value: "b"}} }
	for name, c := range map[string]struct {
		servers []v1beta1.MCPServer
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
		"a variable that is none":     {server(runs(npx, v1beta1.MCPVariable{Name: "A=B", Value: "c"})), "env[0].name"},
		"a variable twice": {server(runs(npx, v1beta1.MCPVariable{Name: "A", Value: "b"},
			v1beta1.MCPVariable{Name: "A", Value: "c"})), "Duplicate value"},
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
func checkServers(t *testing.T, servers []v1beta1.MCPServer, words string) {
	t.Helper()
	chat := newChat(unique("chat"))
	chat.Spec.MCPServers = servers
	checkRefusal(t, dry().Create(t.Context(), chat), words)
}

func TestMCPServersAtTheBoundsAreTaken(t *testing.T) {
	t.Parallel()
	for name, servers := range map[string][]v1beta1.MCPServer{
		"an address and a port":       server(at("http://10.0.0.7:3001/mcp")),
		"an address of IPv6":          server(at("http://[fd00::7]:3001/mcp")),
		"the longest name":            server(called(strings.Repeat("a", 32))),
		"16 servers":                  numbered(16),
		"headers":                     server(withHeaders("X-Tenant", "blue", "X-Empty", "")),
		"all tools require approval":  server(approving("*")),
		"an hour, and a minute":       server(patient(3600, 60)),
		"tools by the server's names": server(approving("files/read", "repo.get*")),
		"a token":                     server(secret("Authorization", "tracker", "token")),
		"a command":                   server(runs([]string{"npx", "-y", "server", ""}, v1beta1.MCPVariable{Name: "A"})),
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
