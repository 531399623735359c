// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/http/httpproxy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/netguard/hostlist"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/proxytest"
)

// holding reads keys of a Secret that can change.
func holding(secret *atomic.Pointer[string]) func(*mcp.Options) {
	return func(o *mcp.Options) {
		o.Namespace = "ns"
		o.Secrets = func(name, key string) ([]byte, error) {
			if value := secret.Load(); value != nil && name == "tracker" && key == "token" {
				return []byte(*value), nil
			}
			return nil, fs.ErrNotExist
		}
	}
}

func withToken(entry v1beta1.MCPServer) v1beta1.MCPServer {
	entry.HeadersFrom = []v1beta1.MCPHeaderSource{{Name: "Authorization", Prefix: "Bearer ",
		SecretKeyRef: v1beta1.SecretKeyReference{Name: "tracker", Key: "token"}}}
	return entry
}

func TestSecretHeaderIsUpdatedWhenSecretChanges(t *testing.T) {
	s := newServer()
	tool(s, "echo", says("ok"))
	handler, wanted := stateless(s), atomic.Value{}
	entry := withToken(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != wanted.Load() {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})))
	var secret atomic.Pointer[string]
	servers, _ := newServers(t, holding(&secret))
	const absent = "Secret tracker does not exist in namespace ns, or has no key token, or that is empty"
	failsWith(t, offer(t, servers, entry), v1beta1.MCPSecretMissing, absent)
	for _, c := range []struct {
		secret, wanted string
		reason         v1beta1.MCPServerReason
	}{
		{"", "Bearer token-1", v1beta1.MCPSecretMissing},
		{"token-1\n", "Bearer token-1", ""},
		{"token-1", "Bearer token-2", ""}, // What was listed with it counts.
		{"token-2", "Bearer token-2", ""},
		{"token-3", "Bearer token-2", v1beta1.MCPAccessDenied},
		{"a\r\nHost: b", "", v1beta1.MCPSecretMissing},
	} {
		secret.Store(&c.secret)
		wanted.Store(c.wanted)
		u := offer(t, servers, entry).Unavailable()
		if c.reason == "" && len(u) > 0 || c.reason != "" && (len(u) != 1 || u[0].Reason != c.reason) {
			t.Errorf("with %q, where %q is wanted: %+v", c.secret, c.wanted, u)
		}
		if len(u) > 0 && c.secret != "" && strings.Contains(u[0].Message, c.secret) {
			t.Errorf("the failure has the secret: %s", u[0].Message)
		}
	}
}

// Security (a hostile MCP server): cannot disclose the Secret that it gets to the model, people or logs.
func TestTextsOfServerNeverHaveItsSecret(t *testing.T) {
	const token = "token-0123456789"
	s, secret := newServer(), atomic.Pointer[string]{}
	secret.Store(new(token))
	leak := "I got Bearer " + token
	s.AddTool(&sdk.Tool{Name: "says", Description: leak, InputSchema: map[string]any{"type": "object", "title": leak}},
		says(leak))
	tool(s, "fails", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: leak}},
			StructuredContent: map[string]any{"leak": leak}}, nil
	})
	tool(s, "refuses", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, &sdkError{leak}
	})
	servers, _ := newServers(t, holding(&secret))
	o := offer(t, servers, withToken(serve(t, stateless(s))))
	var texts []string
	for _, name := range []string{"says", "fails", "refuses"} {
		got := run(t, o, "s__"+name, "{}")
		texts = append(texts, got.output)
		if got.err != nil {
			texts = append(texts, got.err.Error())
		}
	}
	for _, tool := range o.Tools() {
		title, _ := tool.Definition().InputSchema["title"].(string)
		texts = append(texts, tool.Definition().Description, title)
	}
	if all := strings.Join(texts, "\n"); strings.Contains(all, token) || !strings.Contains(all, "[secret]") {
		t.Errorf("the texts are %q", texts)
	}
}

// sdkError is an error in a server's own words.
type sdkError struct{ words string }

func (e *sdkError) Error() string { return e.words }

func TestServerCertificateIsVerifiedWithConfiguredCABundle(t *testing.T) {
	s := newServer()
	tool(s, "look", says("seen"))
	server := httptest.NewTLSServer(stateless(s))
	t.Cleanup(server.Close)
	entry := v1beta1.MCPServer{Name: "s", URL: server.URL + "/mcp"}
	its := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	other := selfSigned(t)

	var bundle atomic.Pointer[string]
	servers, _ := newServers(t, func(o *mcp.Options) {
		o.ConfigMap = func(_ context.Context, name, key string) ([]byte, error) {
			switch held := bundle.Load(); {
			case name != "corp" || key != "ca.crt":
				return nil, errors.New("another one was asked for")
			case held == nil:
				return nil, fs.ErrNotExist
			default:
				return []byte(*held), nil
			}
		}
	})
	unavailable := func() v1beta1.MCPServerUnavailable {
		o := offer(t, servers, entry)
		if all := o.Unavailable(); len(all) > 0 {
			return all[0]
		}
		if got := run(t, o, "s__look", "{}"); got.output != "seen" {
			t.Errorf("the call returned %+v", got)
		}
		return v1beta1.MCPServerUnavailable{}
	}
	if got := unavailable(); got.Message != "its certificate is not trusted" {
		t.Errorf("without authorities it says %+v", got)
	}
	entry.CABundleFrom = &v1beta1.MCPCABundleSource{
		ConfigMapKeyRef: v1beta1.ConfigMapKeyReference{Name: "corp", Key: "ca.crt"}}
	// Each edit of the ConfigMap counts at once, without a moment having passed.
	for _, c := range []struct{ bundle, reason, says string }{
		{"", "CABundleInvalid", "key ca.crt of ConfigMap corp does not exist"},
		{its, "", ""},
		{other, "ConnectionFailed", "its certificate is not trusted"},
		{other + its, "", ""},
		{"no certificate", "CABundleInvalid", "key ca.crt of ConfigMap corp holds no certificates in PEM"},
		{its, "", ""},
	} {
		if bundle.Store(&c.bundle); c.bundle == "" {
			bundle.Store(nil)
		}
		if got := unavailable(); string(got.Reason) != c.reason || got.Message != c.says {
			t.Errorf("with %.20q it says %+v", c.bundle, got)
		}
	}
}

// selfSigned is the certificate of another authority, in PEM.
func selfSigned(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.OK(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check.OK(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
}

func TestAServerIsCalledThroughThePodsProxy(t *testing.T) {
	s := newServer()
	tool(s, "look", says("seen"))
	authority := proxytest.NewAuthority(t)
	served := stateless(s)
	server := authority.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "localhost" // The library refuses other names at a loopback address.
		served.ServeHTTP(w, r)
	}), "mcp.test")
	proxy := proxytest.New(t, server.URL)
	file := filepath.Join(t.TempDir(), "ca.crt")
	check.OK(t, os.WriteFile(file, authority.PEM, 0o600))
	bundle := v1beta1.MCPCABundleSource{ConfigMapKeyRef: v1beta1.ConfigMapKeyReference{Name: "corp", Key: "ca.crt"}}
	for name, c := range map[string]struct {
		file string
		from *v1beta1.MCPCABundleSource
	}{"by the pod's authorities": {file, nil}, "by its own": {"", &bundle}} {
		t.Run(name, func(t *testing.T) {
			before := len(proxy.Asked())
			servers, _ := newServers(t, func(o *mcp.Options) {
				o.HTTP = httpguard.Settings{Loopback: true, CAFile: c.file, Proxy: httpproxy.Config{HTTPSProxy: proxy.URL}}.Client
				o.ConfigMap = func(context.Context, string, string) ([]byte, error) { return authority.PEM, nil }
			})
			o := offer(t, servers, v1beta1.MCPServer{Name: "s", URL: "https://mcp.test/mcp", CABundleFrom: c.from})
			if got := run(t, o, "s__look", "{}"); got.output != "seen" || len(o.Unavailable()) > 0 {
				t.Errorf("the call returned %+v, unavailable %+v", got, o.Unavailable())
			}
			if len(proxy.Asked()) == before {
				t.Error("the proxy is not asked")
			}
		})
	}
}

// Security (a hostile MCP server): cannot be named by an object of another project where --mcp-hosts or the metadata
// rules forbid it, with a password in its address, or get the headers of an entry that now refers elsewhere. Also
// TestObjectWithoutAddressReportsReason of internal/mcp/reference.
func TestServerReferenceIsCalledAtResolvedAddress(t *testing.T) {
	s := newServer()
	tool(s, "look", says("seen"))
	known := serve(t, stateless(s)).URL
	to := func(name string) v1beta1.MCPServerReference {
		return v1beta1.MCPServerReference{Group: "mcp.x-k8s.io", Kind: "MCPServer", Name: name}
	}
	entry := v1beta1.MCPServer{Name: "s", ServerRef: new(to("a"))}
	for name, c := range map[string]struct {
		told   []v1beta1.MCPServerAddress
		hosts  hostlist.List
		reason v1beta1.MCPServerReason
		says   string
	}{
		"its address": {told: []v1beta1.MCPServerAddress{{Name: "s", Ref: to("a"), URL: known}}},
		"what it referred to before": {told: []v1beta1.MCPServerAddress{{Name: "s", Ref: to("b"), URL: known}},
			reason: v1beta1.MCPNotReady, says: "its address is looked up before the next step"},
		"that of another entry": {told: []v1beta1.MCPServerAddress{{Name: "t", Ref: to("a"), URL: known}},
			reason: v1beta1.MCPNotReady, says: "its address is looked up before the next step"},
		"none": {told: []v1beta1.MCPServerAddress{{Name: "s", Ref: to("a"), Reason: v1beta1.MCPReferenceNotFound,
			Message: "MCPServer a: there is none in the namespace"}},
			reason: v1beta1.MCPReferenceNotFound, says: "MCPServer a: there is none in the namespace"},
		"a host that is not allowed": {told: []v1beta1.MCPServerAddress{{Name: "s", Ref: to("a"), URL: known}},
			hosts: hostlist.List{"mcp.example.com"}, reason: v1beta1.MCPHostForbidden},
		"where clouds serve credentials": {told: []v1beta1.MCPServerAddress{
			{Name: "s", Ref: to("a"), URL: "http://169.254.169.254/mcp"}}, reason: v1beta1.MCPHostForbidden},
		"no url at all": {told: []v1beta1.MCPServerAddress{{Name: "s", Ref: to("a"), URL: "http://me:secret@a/"}},
			reason: v1beta1.MCPConnectionFailed, says: "its url is not valid"},
	} {
		servers, _ := newServers(t, func(o *mcp.Options) { o.Hosts = c.hosts })
		o := servers.Offer(t.Context(), []v1beta1.MCPServer{entry}, mcp.Places{Told: c.told})
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
