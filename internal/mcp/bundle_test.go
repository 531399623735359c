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
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http/httpproxy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/proxytest"
)

func TestServerCertificateIsVerifiedWithConfiguredCABundle(t *testing.T) {
	s := newServer()
	tool(s, "look", says("seen"))
	server := httptest.NewTLSServer(stateless(s))
	t.Cleanup(server.Close)
	entry := v1alpha1.MCPServer{Name: "s", URL: server.URL + "/mcp"}
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
	unavailable := func() v1alpha1.MCPServerUnavailable {
		o := offer(t, servers, entry)
		if all := o.Unavailable(); len(all) > 0 {
			return all[0]
		}
		if got := run(t, o, "s__look", "{}"); got.output != "seen" {
			t.Errorf("the call returned %+v", got)
		}
		return v1alpha1.MCPServerUnavailable{}
	}
	if got := unavailable(); got.Message != "its certificate is not trusted" {
		t.Errorf("without authorities it says %+v", got)
	}
	entry.CABundleFrom = &v1alpha1.MCPCABundleSource{
		ConfigMapKeyRef: v1alpha1.ConfigMapKeyReference{Name: "corp", Key: "ca.crt"}}
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
	bundle := v1alpha1.MCPCABundleSource{ConfigMapKeyRef: v1alpha1.ConfigMapKeyReference{Name: "corp", Key: "ca.crt"}}
	for name, c := range map[string]struct {
		file string
		from *v1alpha1.MCPCABundleSource
	}{"by the pod's authorities": {file, nil}, "by its own": {"", &bundle}} {
		t.Run(name, func(t *testing.T) {
			before := len(proxy.Asked())
			servers, _ := newServers(t, func(o *mcp.Options) {
				o.HTTP = httpguard.Settings{Loopback: true, CAFile: c.file, Proxy: httpproxy.Config{HTTPSProxy: proxy.URL}}.Client
				o.ConfigMap = func(context.Context, string, string) ([]byte, error) { return authority.PEM, nil }
			})
			o := offer(t, servers, v1alpha1.MCPServer{Name: "s", URL: "https://mcp.test/mcp", CABundleFrom: c.from})
			if got := run(t, o, "s__look", "{}"); got.output != "seen" || len(o.Unavailable()) > 0 {
				t.Errorf("the call returned %+v, unavailable %+v", got, o.Unavailable())
			}
			if len(proxy.Asked()) == before {
				t.Error("the proxy is not asked")
			}
		})
	}
}
