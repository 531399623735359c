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

	"parley.dev/parley/test/kit/check"
)

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
	g, err := caller(o).Dial(t.Context())
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
	o.URL = caller(o).forwarded(port)
	if err := hear(t, o); err != nil || !strings.HasPrefix(o.URL, "https://127.0.0.1:") {
		t.Errorf("%s: %v", o.URL, err)
	}
	if plain := caller(GatewayOptions{}).forwarded(port); !strings.HasPrefix(plain, "http://127.0.0.1:") {
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
	o := outage{report: func(error) { told++ }}
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
		if told != c.want {
			t.Errorf("after %s it was told %d times, want %d", c.after, told, c.want)
		}
	}
}
