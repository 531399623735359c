// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package proxytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"parley.dev/parley/test/kit/check"
)

// Authority is a private one, which no system trusts.
type Authority struct {
	// PEM is its certificate.
	PEM  []byte
	own  *x509.Certificate
	sign *ecdsa.PrivateKey
}

// NewAuthority makes one.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{sign: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "private authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, a.sign.Public(), a.sign)
	check.OK(t, err)
	if a.own, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	a.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	return a
}

// Server serves over TLS, with a certificate of the authority for these names, until the test ends.
func (a *Authority) Server(t testing.TB, handler http.Handler, names ...string) *httptest.Server {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), DNSNames: names}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.own, key.Public(), a.sign)
	check.OK(t, err)
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // Clients that do not trust it are tests.
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.OK(t, err)
	return key
}
