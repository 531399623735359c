// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"parley.dev/parley/client"
	"parley.dev/parley/test/kit/check"
)

// caller is a dialer whose kubeconfig has a token of a person.
func caller(t *testing.T, o GatewayOptions) *Dialer {
	t.Helper()
	return callerAs(t, o, "alice", false)
}

// callerAs is a dialer of the user. Its API server creates tokens of service accounts, unless that is forbidden. A fake
// clientset would import 58 packages.
func callerAs(t *testing.T, o GatewayOptions, user string, forbidden bool) *Dialer {
	t.Helper()
	api := http.NewServeMux()
	api.HandleFunc("POST /apis/authentication.k8s.io/v1/selfsubjectreviews", func(w http.ResponseWriter, _ *http.Request) {
		answer(t, w, http.StatusCreated, &authenticationv1.SelfSubjectReview{
			Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: user}},
		})
	})
	api.HandleFunc("POST /api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
		func(w http.ResponseWriter, r *http.Request) {
			if forbidden {
				err := apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, r.PathValue("name"), nil)
				answer(t, w, http.StatusForbidden, err.Status())
				return
			}
			var request authenticationv1.TokenRequest
			if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
				t.Errorf("reading the request for a token: %v", err)
			}
			request.Status.Token = r.PathValue("namespace") + "/" + r.PathValue("name") + " " +
				strings.Join(request.Spec.Audiences, ",")
			answer(t, w, http.StatusCreated, &request)
		})
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	core, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	check.OK(t, err)
	return &Dialer{Options: o, Namespace: "ns", Config: &rest.Config{BearerToken: "kubeconfig"}, Core: core}
}

func answer(t *testing.T, w http.ResponseWriter, code int, with any) {
	t.Helper()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(with); err != nil {
		t.Errorf("answering: %v", err)
	}
}

// drain reads events until the chat is deleted.
func drain(ctx context.Context, g *Gateway) error {
	for _, err := range g.Follow(ctx, "ns", "c", false, func(error) {}) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestARedirectDoesNotTakeTheTokenElsewhere(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host was asked with %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	asked := ""
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Authorization")
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer gateway.Close()
	g, err := caller(t, GatewayOptions{URL: gateway.URL}).Dial(t.Context())
	check.OK(t, err)
	err = drain(t.Context(), g)
	if _, refused := errors.AsType[*client.Error](err); !refused || !strings.Contains(err.Error(), "(307)") ||
		asked != "Bearer kubeconfig" {
		t.Errorf("asked as %q: %v", asked, err)
	}
}

func TestTokenLeavesThisMachineEncryptedAlone(t *testing.T) {
	for given, taken := range map[string]bool{
		"https://gateway.test": true, "http://127.0.0.1:8080": true, "http://127.9.9.9": true, "http://[::1]:80": true,
		"http://localhost:1":  true,
		"http://gateway.test": false, "http://10.0.0.1": false, "http://parley-gateway.parley-system.svc": false,
		"http://localhost.test": false,
		"http://127.0.0.1.test": false, "gateway.test": false, "ftp://127.0.0.1": false, "http://": false,
		"HTTP://gateway.test": false,
	} {
		for _, d := range []*Dialer{caller(t, GatewayOptions{URL: given}), caller(t, GatewayOptions{})} {
			if d.Options.URL == "" {
				t.Setenv("PARLEY_GATEWAY", given)
			}
			if _, err := d.Dial(t.Context()); (err == nil) != taken {
				t.Errorf("%s: %v", given, err)
			}
		}
	}
	if _, err := caller(t, GatewayOptions{URL: "http://gateway.test", Insecure: true}).Dial(t.Context()); err != nil {
		t.Errorf("with the risk taken: %v", err)
	}
}

func TestGatewayGetsATokenOfItsAudience(t *testing.T) {
	for name, c := range map[string]struct {
		user, named, want string
		forbidden         bool
	}{
		"a service account":             {user: "system:serviceaccount:team:bot", want: "team/bot parley-gateway"},
		"one that may not ask for it":   {user: "system:serviceaccount:team:bot", forbidden: true, want: "kubeconfig"},
		"a person":                      {user: "alice", want: "kubeconfig"},
		"a person who names an account": {user: "alice", named: "person", want: "ns/person parley-gateway"},
		"an account that names another": {user: "system:serviceaccount:team:bot", named: "person",
			want: "ns/person parley-gateway"},
		"a person who may name no other": {user: "alice", named: "person", forbidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			shown := ""
			gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				shown = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
				w.WriteHeader(http.StatusForbidden)
			}))
			defer gateway.Close()
			d := callerAs(t, GatewayOptions{URL: gateway.URL, ServiceAccount: c.named}, c.user, c.forbidden)
			g, err := d.Dial(t.Context())
			if err == nil {
				_ = drain(t.Context(), g)
			}
			if shown != c.want || (err != nil) != (c.want == "") {
				t.Errorf("shown %q, %v", shown, err)
			}
		})
	}
}

// serveTLS is a gateway whose certificate is for a name, and the file with its CA.
func serveTLS(t *testing.T, name string) (server *httptest.Server, caFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.OK(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check.OK(t, err)
	caFile = filepath.Join(t.TempDir(), "ca.crt")
	check.OK(t, os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "event: deleted\ndata: {}\n\n")
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, caFile
}

// hear follows until the chat is deleted.
func hear(t *testing.T, o GatewayOptions) error {
	t.Helper()
	g, err := caller(t, o).Dial(t.Context())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return drain(ctx, g)
}

func TestForwardedPortSpeaksTLSWithACA(t *testing.T) {
	t.Parallel()
	server, ca := serveTLS(t, "parley-gateway.chats.svc")
	port := server.Listener.Addr().(*net.TCPAddr).AddrPort().Port()
	o := GatewayOptions{CA: ca, Namespace: "chats"}
	o.URL = caller(t, o).forwarded(port)
	if err := hear(t, o); err != nil || !strings.HasPrefix(o.URL, "https://127.0.0.1:") {
		t.Errorf("%s: %v", o.URL, err)
	}
	if plain := caller(t, GatewayOptions{}).forwarded(port); !strings.HasPrefix(plain, "http://127.0.0.1:") {
		t.Errorf("without a CA: %s", plain)
	}
}

func TestUnusableGatewaySaysWhatToDo(t *testing.T) {
	t.Parallel()
	server, ca := serveTLS(t, "parley-gateway.chats.svc")
	_, other := serveTLS(t, "parley-gateway.chats.svc")
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	none := filepath.Join(t.TempDir(), "none.crt")
	check.OK(t, os.WriteFile(none, []byte("no certificate"), 0o600))
	for name, c := range map[string]struct {
		o    GatewayOptions
		want string
	}{
		"plain HTTP to TLS": {GatewayOptions{URL: strings.Replace(server.URL, "https", "http", 1)},
			"name the file with its CA with --gateway-ca"},
		"TLS to plain HTTP": {GatewayOptions{URL: strings.Replace(plain.URL, "http", "https", 1), CA: ca},
			"it speaks plain HTTP"},
		"no CA": {GatewayOptions{URL: server.URL}, "--gateway-ca names the file"},
		"another CA": {GatewayOptions{URL: server.URL, CA: other, Namespace: "chats"},
			"--gateway-ca names the file"},
		"the Service of another one": {GatewayOptions{URL: server.URL, CA: ca, Namespace: "parley-system"},
			"parley-gateway.parley-system.svc"},
		"a file that is not there": {GatewayOptions{URL: server.URL, CA: ca + ".gone"},
			"reading the CA of the gateway"},
		"a file without a certificate": {GatewayOptions{URL: server.URL, CA: none}, "there is no certificate in"},
		"an answer that is no JSON":    {GatewayOptions{URL: plain.URL}, "the gateway refused (404): Not Found"},
	} {
		if err := hear(t, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnOutageIsToldOnceIfItLasts(t *testing.T) {
	told := 0
	o := Outage{Report: func(error) { told++ }}
	begun, refused := time.Now(), errors.New("connection refused")
	for _, c := range []struct {
		after time.Duration
		over  bool
		want  int
	}{{0, false, 0}, {patience - 1, false, 0}, {patience, false, 1}, {time.Hour, false, 1}, {time.Hour, true, 1},
		{time.Hour, false, 1}, {time.Hour + patience - 1, false, 1}, {time.Hour + patience, false, 2}} {
		if c.over {
			o.over()
		} else {
			o.lost(begun.Add(c.after), refused)
		}
		check.Equal(t, c.after, c.want, told)
	}
}
