// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var issuedAt = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func write(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	o := Options{Dir: dir, Server: "https://127.0.0.1:443", Kubelets: map[string]string{"kubelet": "node1"},
		Names: []string{"kubernetes.default.svc", "127.0.0.1", "10.96.0.1"}, Now: issuedAt}
	if err := Write(o); err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, parts ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func certificate(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(read(t, dir, name+".crt"))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestEveryCertificateVerifiesAgainstItsOwnAuthorityOnly(t *testing.T) {
	dir := write(t)
	for _, tc := range []struct {
		name, ca, otherCA string
		usage             x509.ExtKeyUsage
		cn, group         string
	}{
		{"apiserver", "ca", "front-proxy-ca", x509.ExtKeyUsageServerAuth, "kube-apiserver", ""},
		{"apiserver-kubelet-client", "ca", "front-proxy-ca", x509.ExtKeyUsageClientAuth, "kube-apiserver-kubelet-client",
			"system:masters"},
		{"front-proxy-client", "front-proxy-ca", "ca", x509.ExtKeyUsageClientAuth, "front-proxy-client", ""},
		{"admin", "ca", "front-proxy-ca", x509.ExtKeyUsageClientAuth, "admin", "system:masters"},
		{"kube-controller-manager", "ca", "front-proxy-ca", x509.ExtKeyUsageClientAuth, "system:kube-controller-manager", ""},
		{"kubelet", "ca", "front-proxy-ca", x509.ExtKeyUsageClientAuth, "system:node:node1", "system:nodes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cert := certificate(t, dir, tc.name)
			for ca, want := range map[string]bool{tc.ca: true, tc.otherCA: false} {
				roots := x509.NewCertPool()
				roots.AddCert(certificate(t, dir, ca))
				_, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: issuedAt,
					KeyUsages: []x509.ExtKeyUsage{tc.usage}})
				if (err == nil) != want {
					t.Errorf("verifying against %s: %v, want success %v", ca, err, want)
				}
			}
			if cert.Subject.CommonName != tc.cn {
				t.Errorf("common name is %q, want %q", cert.Subject.CommonName, tc.cn)
			}
			if got := append(cert.Subject.Organization, "")[0]; got != tc.group {
				t.Errorf("group is %q, want %q", got, tc.group)
			}
		})
	}
}

func TestTheServingCertificateHoldsItsNamesAndAddresses(t *testing.T) {
	cert := certificate(t, write(t), "apiserver")
	for host, want := range map[string]bool{"kubernetes.default.svc": true, "127.0.0.1": true, "10.96.0.1": true,
		"example.org": false, "10.96.0.2": false} {
		if err := cert.VerifyHostname(host); (err == nil) != want {
			t.Errorf("%s: %v, want success %v", host, err, want)
		}
	}
}

func TestKeysAreForTheirOwnerOnly(t *testing.T) {
	dir := write(t)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 15 {
		t.Errorf("only %d files were written", len(entries))
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", e.Name(), info.Mode().Perm())
		}
	}
}

// The pair is used as the API server and kubectl use it: a TLS server that asks for a client certificate.
func TestAKubeconfigLogsInWithMutualTLS(t *testing.T) {
	dir := write(t)
	pool := x509.NewCertPool()
	pool.AddCert(certificate(t, dir, "ca"))
	serving, err := tls.X509KeyPair(read(t, dir, "apiserver.crt"), read(t, dir, "apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.TLS.PeerCertificates[0].Subject.CommonName))
	}))
	now := func() time.Time { return issuedAt }
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{serving}, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, Time: now}
	srv.StartTLS()
	defer srv.Close()

	b, err := Kubeconfig(dir, "admin", srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string
				CA     []byte `json:"certificate-authority-data"`
			}
		}
		Users []struct {
			User struct {
				Cert []byte `json:"client-certificate-data"`
				Key  []byte `json:"client-key-data"`
			}
		}
	}
	if err := json.Unmarshal(b, &config); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(config.Users[0].User.Cert, config.Users[0].User.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(config.Clusters[0].Cluster.CA) {
		t.Fatal("the kubeconfig holds no CA")
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots,
		Certificates: []tls.Certificate{pair}, Time: now}}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(config.Clusters[0].Cluster.Server)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if name := resp.TLS.PeerCertificates[0].Subject.CommonName; name != "kube-apiserver" ||
		resp.StatusCode != http.StatusOK {
		t.Errorf("got %d from %q", resp.StatusCode, name)
	}
}
