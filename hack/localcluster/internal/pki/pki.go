// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki makes the throw-away keys and certificates of one local cluster.
//
// A cluster trusts two authorities, one for everyone and one for the API server's front proxy. They are made
// again on every start, their keys never leave the cluster's directory (mode 0600), and they are good for one year,
// longer than any development cluster lives.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Options says whom the certificates are for.
type Options struct {
	// Dir receives the files. It is created if needed.
	Dir string
	// Server is the API server's URL as the cluster's own programs reach it.
	Server string
	// Kubelets are the names of nodes, by those of the files for their kubelets.
	Kubelets map[string]string
	// Names are the DNS names and IP addresses that the API server's certificate holds.
	Names []string
	// Now is the time the certificates count from.
	Now time.Time
}

// user is a client of the API server that gets a kubeconfig.
type user struct {
	file, name, group string
}

// Write makes everything: ca, front-proxy-ca, the API server's serving and client certificates, the
// service-account key pair, and <user>.kubeconfig for admin and the cluster's own programs.
func Write(o Options) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("creating the PKI directory: %w", err)
	}
	w := writer{Options: o}
	ca := w.authority("ca")
	front := w.authority("front-proxy-ca")
	w.issue(ca, "apiserver", pkix.Name{CommonName: "kube-apiserver"}, x509.ExtKeyUsageServerAuth, o.Names)
	w.issue(ca, "apiserver-kubelet-client", subject("kube-apiserver-kubelet-client", "system:masters"),
		x509.ExtKeyUsageClientAuth, nil)
	w.issue(front, "front-proxy-client", subject("front-proxy-client", ""), x509.ExtKeyUsageClientAuth, nil)
	w.serviceAccountKey()
	users := []user{
		{"admin", "admin", "system:masters"},
		{"kube-controller-manager", "system:kube-controller-manager", ""},
		{"kube-scheduler", "system:kube-scheduler", ""},
	}
	for file, node := range o.Kubelets {
		users = append(users, user{file, "system:node:" + node, "system:nodes"})
	}
	for _, u := range users {
		w.issue(ca, u.file, subject(u.name, u.group), x509.ExtKeyUsageClientAuth, nil)
		w.kubeconfig(u.file)
	}
	return w.err
}

func subject(name, group string) pkix.Name {
	n := pkix.Name{CommonName: name}
	if group != "" {
		n.Organization = []string{group}
	}
	return n
}

// writer keeps the first error, so that the list of certificates above reads as a list.
type writer struct {
	Options
	err error
}

// authority is a self-signed certificate and the key to sign others with.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (w *writer) file(name string, b []byte) {
	if w.err != nil {
		return
	}
	if err := os.WriteFile(filepath.Join(w.Dir, name), b, 0o600); err != nil {
		w.err = fmt.Errorf("writing %s: %w", name, err)
	}
}

// template is what all certificates have in common. It starts an hour early: clocks in containers may lag.
func (w *writer) template(name pkix.Name) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 62))
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("making a serial number: %w", err)
	}
	return &x509.Certificate{SerialNumber: serial, Subject: name, NotBefore: w.Now.Add(-time.Hour),
		NotAfter: w.Now.AddDate(1, 0, 0)}
}

// sign makes a key pair for a template, signs it and writes both files. A nil parent signs itself.
func (w *writer) sign(file string, template *x509.Certificate, parent *authority) authority {
	if w.err != nil {
		return authority{}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.err = fmt.Errorf("making the key of %s: %w", file, err)
		return authority{}
	}
	if parent == nil {
		parent = &authority{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent.cert, &key.PublicKey, parent.key)
	if err != nil {
		w.err = fmt.Errorf("signing %s: %w", file, err)
		return authority{}
	}
	w.file(file+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	w.privateKey(file+".key", key)
	cert, err := x509.ParseCertificate(der)
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("reading %s back: %w", file, err)
	}
	return authority{cert, key}
}

func (w *writer) authority(file string) authority {
	t := w.template(pkix.Name{CommonName: file})
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	return w.sign(file, t, nil)
}

func (w *writer) issue(by authority, file string, name pkix.Name, usage x509.ExtKeyUsage, hosts []string) {
	t := w.template(name)
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{usage}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	w.sign(file, t, &by)
}

func (w *writer) privateKey(file string, key *ecdsa.PrivateKey) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("encoding %s: %w", file, err)
	}
	w.file(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

// serviceAccountKey makes the pair that signs and checks service-account tokens.
func (w *writer) serviceAccountKey() {
	if w.err != nil {
		return
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.err = fmt.Errorf("making the service-account key: %w", err)
		return
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		w.err = fmt.Errorf("encoding the service-account key: %w", err)
		return
	}
	w.privateKey("sa.key", key)
	w.file("sa.pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func (w *writer) kubeconfig(file string) {
	if w.err != nil {
		return
	}
	b, err := Kubeconfig(w.Dir, file, w.Server)
	if err != nil {
		w.err = err
		return
	}
	w.file(file+".kubeconfig", b)
}
