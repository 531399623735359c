// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cloudtest serves, over real TLS and HTTP, the token endpoints of Azure and Google, and models behind them.
// They hold callers to their protocols, and refuse anything else.
package cloudtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
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
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"parley.dev/parley/test/kit/check"
)

// What is known of the pod's identity.
const (
	// Issuer of the cluster's service-account tokens, and Subject whom they are for.
	Issuer  = "https://cluster.example"
	Subject = "system:serviceaccount:ns:parley-generation"
	// ClientID and TenantID are those of the identity at Azure.
	ClientID = "11111111-2222-3333-4444-555555555555"
	TenantID = "66666666-7777-8888-9999-000000000000"
	// Audience names the provider at Google, and Account the service account behind it.
	Audience = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/cluster"
	Account  = "models@project-1.iam.gserviceaccount.com"
)

// Cloud is a cluster's issuer, with the clouds that trust it.
type Cloud struct {
	t      *testing.T
	signer jose.Signer
	key    *ecdsa.PrivateKey
	dir    string
	client *http.Client
	now    func() time.Time

	mu sync.Mutex
	// exchanges are the endpoints that gave tokens, calls the authorizations that models accepted.
	exchanges, calls []string
	// valid are the tokens, with their uses and ends.
	valid map[string]grant
	// fail answers in place of an endpoint, by its host.
	fail map[string]http.HandlerFunc
}

type grant struct {
	scope string
	ends  time.Time
}

// New starts the clouds. now tells their time.
func New(t *testing.T, now func() time.Time) *Cloud {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	must(t, err)
	c := &Cloud{t: t, signer: signer, key: key, dir: t.TempDir(), now: now, valid: map[string]grant{},
		fail: map[string]http.HandlerFunc{}}
	server := httptest.NewUnstartedServer(c.routes())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	certificate, roots := certificateOf(t, key)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	c.client = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
			},
		},
	}
	metadata := httptest.NewServer(c.endpoint("metadata", c.metadata))
	t.Cleanup(metadata.Close)
	for _, name := range []string{"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE",
		"AZURE_AUTHORITY_HOST", "GOOGLE_APPLICATION_CREDENTIALS"} {
		t.Setenv(name, "")
	}
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(metadata.URL, "http://"))
	return c
}

// certificateOf is a certificate for the hosts of both clouds, and whom to trust for it.
func certificateOf(t *testing.T, key *ecdsa.PrivateKey) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		DNSNames: []string{"*.openai.azure.com", "*.openai.azure.us", "login.microsoftonline.com", "login.microsoftonline.us",
			"*.googleapis.com", "aiplatform.eu.rep.googleapis.com", "models.example.com"},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	parsed, err := x509.ParseCertificate(raw)
	must(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, roots
}

// Client reaches the clouds under their own names.
func (c *Cloud) Client() *http.Client { return c.client }

// OnAzure sets the environment that Azure's webhook gives a pod, and returns the file of its token.
func (c *Cloud) OnAzure(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(c.dir, "azure-identity-token")
	c.Rotate(file, "api://AzureADTokenExchange")
	t.Setenv("AZURE_CLIENT_ID", ClientID)
	t.Setenv("AZURE_TENANT_ID", TenantID)
	t.Setenv("AZURE_FEDERATED_TOKEN_FILE", file)
	t.Setenv("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.com/")
	return file
}

// OnGoogle sets the environment with a credential configuration, and returns the file of the pod's token. account is
// the service account to impersonate; empty: none.
func (c *Cloud) OnGoogle(t *testing.T, account string) (file string) {
	t.Helper()
	file = filepath.Join(c.dir, "google-token")
	c.Rotate(file, Audience)
	configuration := map[string]any{
		"type": "external_account", "audience": Audience, "token_url": "https://sts.googleapis.com/v1/token",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "credential_source": map[string]string{"file": file},
	}
	if account != "" {
		configuration["service_account_impersonation_url"] =
			"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/" + account + ":generateAccessToken"
	}
	raw, err := json.Marshal(configuration)
	must(t, err)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", c.File("configuration.json", string(raw)))
	return file
}

// File writes a file, and returns its path.
func (c *Cloud) File(name, content string) string {
	file := filepath.Join(c.dir, name)
	must(c.t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// Rotate writes a token of the pod that is good for an hour, as a kubelet does, and returns it.
func (c *Cloud) Rotate(file, audience string) string {
	c.t.Helper()
	token, err := jwt.Signed(c.signer).Claims(jwt.Claims{
		Issuer: Issuer, Subject: Subject, Audience: jwt.Audience{audience}, IssuedAt: jwt.NewNumericDate(c.now()),
		Expiry: jwt.NewNumericDate(c.now().Add(time.Hour)),
	}).Serialize()
	must(c.t, err)
	must(c.t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	return token
}

// Fail makes an endpoint, or a model, answer so: by its host, or metadata. The handler may be nil: it answers as usual.
func (c *Cloud) Fail(host string, answer http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail[host] = answer
}

// Exchanges are the endpoints that gave a token, in order.
func (c *Cloud) Exchanges() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.exchanges...)
}

// Calls are the tokens of the calls that models answered, in order.
func (c *Cloud) Calls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.calls...)
}

// grant makes a token that is good for an hour.
func (c *Cloud) grant(endpoint, scope string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exchanges = append(c.exchanges, endpoint)
	token := fmt.Sprintf("access-%s-%d", endpoint, len(c.exchanges))
	c.valid[token] = grant{scope, c.now().Add(time.Hour)}
	return token
}

// granted reports whether a request has a token for the scope.
func (c *Cloud) granted(r *http.Request, scope string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, ok := c.valid[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	return ok && g.scope == scope && c.now().Before(g.ends)
}

// proves reports whether a token is one of the pod for the audience, and not expired.
func (c *Cloud) proves(token, audience string) bool {
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	var claims jwt.Claims
	if err != nil || parsed.Claims(c.key.Public(), &claims) != nil {
		return false
	}
	return claims.ValidateWithLeeway(jwt.Expected{Issuer: Issuer, Subject: Subject,
		AnyAudience: jwt.Audience{audience}, Time: c.now()}, 0) == nil
}

func must(t *testing.T, err error) {
	t.Helper()
	check.OK(t, err)
}
