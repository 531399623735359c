// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/test/kit/check"
)

// issue writes a new certificate for this machine, and its key.
func issue(t *testing.T, dir string, serial int64) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.OK(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check.OK(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	check.OK(t, err)
	certFile, keyFile, pool = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), x509.NewCertPool()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool.AppendCertsFromPEM(certificate)
	for file, data := range map[string][]byte{certFile: certificate,
		keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		check.OK(t, os.WriteFile(file, data, 0o600))
	}
	return certFile, keyFile, pool
}

func TestACertificateThatIsReplacedIsServedSoon(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, _ := issue(t, dir, 1)
	c := &certificate{certFile: certFile, keyFile: keyFile, log: slog.New(slog.DiscardHandler), now: time.Now}
	serial := func() int64 {
		t.Helper()
		got, err := c.get(nil)
		check.OK(t, err)
		return got.Leaf.SerialNumber.Int64()
	}
	check.Equal(t, "certificate", 1, serial())
	issue(t, dir, 2)
	check.Equal(t, "certificate at once: the files are read for every client", 1, serial())
	c.read = c.read.Add(-certificateAge)
	check.Equal(t, "certificate", 2, serial())
	check.OK(t, os.WriteFile(keyFile, nil, 0o600))
	c.read = c.read.Add(-certificateAge)
	check.Equal(t, "certificate while it is replaced", 2, serial())
	if _, err := TLS(certFile, keyFile, c.log, time.Now); err == nil ||
		!strings.Contains(err.Error(), "reading the certificate") {
		t.Errorf("a gateway begins with %v", err)
	}
}

func TestStreamsAreServedOverTLS(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c := in.converse("chat")
	certFile, keyFile, pool := issue(t, t.TempDir(), 1)
	certificates, err := TLS(certFile, keyFile, slog.New(slog.DiscardHandler), time.Now)
	check.OK(t, err)
	in.serve(certificates, func(g *Gateway) {
		g.readTimeout, g.writeTimeout = 2*time.Second, time.Second // A handshake on a busy machine takes a while.
	})
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		in.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool,
			MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: http2}}
		resp := in.get(t.Context(), in.path("chat"), in.token, nil)
		resp.Body.Close()
		if !strings.HasPrefix(resp.Proto, name) || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", name, resp.Proto, resp.Status)
		}
		l := in.listen("chat", "", 0)
		l.waitName(stream.EventStatus)
		<-time.After(3 * time.Second) // The stream outlives both timeouts.
		h := &c.chat.Status.History
		asked := c.ask(fmt.Sprintf("q%d", h.Version+1), h.Version+1)
		c.commit()
		c.settle(asked)
		l.wait("the message", func(e event) bool {
			return e.Name == stream.EventMessage && strings.Contains(e.Data, c.chat.Status.History.Head)
		})
	}
}
