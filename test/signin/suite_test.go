// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package signin signs people in to the gateway's page with a real OpenID provider over TLS, and a real API server that
// trusts it.
package signin

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/internal/gateway/signin"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
	"parley.dev/parley/test/kit/waiting"
)

// Clients of the provider: the API server accepts the tokens of all but the last.
const (
	confidential = "page"
	public       = "public-page"
	unknown      = "unknown-page"
	secret       = "secret"
)

var (
	cluster *testcluster.Cluster
	idp     *provider
)

func TestMain(m *testing.M) {
	idp = startProvider()
	dir, err := os.MkdirTemp("", "parley-signin-")
	if err != nil {
		panic(err)
	}
	file := filepath.Join(dir, "authentication.yaml")
	if err := os.WriteFile(file, []byte(idp.trust()), 0o600); err != nil {
		panic(err)
	}
	code := testcluster.RunWith(m, &cluster, func(c *envtest.ControlPlane) {
		c.GetAPIServer().Configure().Set("authentication-config", file)
	}, func(ctx context.Context) (end func(), err error) {
		return nil, cluster.CreateClusterRoles(ctx, testcluster.Path("config", "rbac", "users.yaml"))
	})
	idp.server.Close()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// provider is the example server of zitadel/oidc, with clients for each gateway.
type provider struct {
	*storage.Storage
	server *httptest.Server
	// lifetime is that of ID tokens, down whether the provider answers nothing but 503, and keysDown whether its keys do.
	lifetime       atomic.Int64
	down, keysDown atomic.Bool
	// refreshed counts refresh tokens that were used.
	refreshed atomic.Int64
}

func startProvider() *provider {
	storage.RegisterClients(storage.WebClient(confidential, secret), storage.NativeClient(public),
		storage.WebClient(unknown, secret))
	p := &provider{server: httptest.NewUnstartedServer(nil)}
	issuer := "https://" + p.server.Listener.Addr().String()
	p.Storage = storage.NewStorage(storage.NewUserStore(issuer))
	p.lifetime.Store(int64(time.Hour))
	serve := exampleop.SetupServer(issuer, p, slog.New(slog.DiscardHandler), false)
	p.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.down.Load() || p.keysDown.Load() && r.URL.Path == "/keys" {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		serve.ServeHTTP(w, r)
	})
	p.server.StartTLS()
	return p
}

// GetClientByClientID implements op.Storage.
func (p *provider) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	found, err := p.Storage.GetClientByClientID(ctx, id)
	return client{found, p}, err
}

// TokenRequestByRefreshToken implements op.Storage.
func (p *provider) TokenRequestByRefreshToken(ctx context.Context, token string) (op.RefreshTokenRequest, error) {
	p.refreshed.Add(1)
	return p.Storage.TokenRequestByRefreshToken(ctx, token)
}

// client is one whose gateways have any port, and whose ID tokens last as long as a test wants.
type client struct {
	op.Client
	provider *provider
}

func (c client) IDTokenLifetime() time.Duration { return time.Duration(c.provider.lifetime.Load()) }

func (c client) RedirectURIs() []string { return redirects }

func (c client) PostLogoutRedirectURIs() []string {
	var all []string
	for _, at := range redirects {
		all = append(all, strings.TrimSuffix(at, "callback"))
	}
	return all
}

// redirects are the callbacks of the gateways of the tests, which run one after another.
var redirects []string

// trust is the API server's configuration of authentication that trusts the provider. It has the example of the
// documentation too: the API server does not start with one that it does not take.
func (p *provider) trust() string {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: %s
    audiences: [%s, %s]
    audienceMatchPolicy: MatchAny
    certificateAuthority: %q
  claimMappings:
    username: {claim: sub, prefix: "oidc:"}
    groups: {expression: "['oidc:readers']"}
%s`, p.server.URL, confidential, public, authority, documented())
}

// documented is what the page about signing in has under jwt.
func documented() string {
	page, err := os.ReadFile("../../docs/how-to/sign-in.md")
	if err != nil {
		panic(err)
	}
	_, after, ok := strings.Cut(string(page), "kind: AuthenticationConfiguration\njwt:\n")
	example, _, closed := strings.Cut(after, "```")
	if !ok || !closed {
		panic("docs/how-to/sign-in.md has no AuthenticationConfiguration with jwt")
	}
	return example
}

// site is a gateway that people sign in to.
type site struct {
	t         *testing.T
	namespace string
	url       string
	// ahead is how much later its clock is.
	ahead atomic.Int64
}

// startSite starts a gateway with a confidential client and the keys of some letters.
func startSite(t *testing.T, configure func(*signin.Options)) *site {
	t.Helper()
	s := &site{t: t, namespace: cluster.Namespace(t, "signin")}
	server := httptest.NewUnstartedServer(nil)
	s.url = "https://" + server.Listener.Addr().String()
	redirects = append(redirects, s.url+signin.CallbackPath)
	core, err := kubernetes.NewForConfig(cluster.Config)
	check.OK(t, err)
	api, err := apiclient.New(cluster.Config, "parley-gateway")
	check.OK(t, err)
	callers, err := rest.NewClient(cluster.Config)
	check.OK(t, err)
	options := signin.Options{Issuer: idp.server.URL, ClientID: confidential, ClientSecret: secret, Keys: keys(t, "a"),
		Scopes: []string{"openid", "email", "offline_access"}, RedirectURL: s.url + signin.CallbackPath,
		Transport: transport(), Callers: callers, Now: s.now}
	if configure != nil {
		configure(&options)
	}
	people, err := signin.New(options)
	check.OK(t, err)
	g, err := gateway.New(gateway.Config{
		Namespaces: []string{s.namespace},
		Sources:    gateway.NewSources(api, core.CoreV1().RESTClient()),
		GetMessage: func(ctx context.Context, namespace, name string) (*v1beta1.ChatMessage, error) {
			return api.Messages(namespace).Get(ctx, name)
		},
		Checker: auth.New(core.AuthenticationV1().TokenReviews(), core.AuthorizationV1().SubjectAccessReviews(),
			auth.Options{APIServerTokens: true, Now: s.now}),
		Callers: callers, SignIn: people, Now: s.now,
		PodToken: func(context.Context, string) (string, time.Time, error) {
			return "", time.Time{}, errors.New("there is no relay")
		},
	})
	check.OK(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { g.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	server.Config.Handler = g.Handler()
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	waiting.Until(t, time.Minute, "the gateway is synced", g.Synced)
	return s
}

func (s *site) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

// keys are those of some letters.
func keys(t *testing.T, letters string) signin.Keys {
	t.Helper()
	var text []string
	for letter := range strings.SplitSeq(letters, "") {
		text = append(text, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(letter), 32)))
	}
	parsed, err := signin.ParseKeys(strings.Join(text, "\n"))
	check.OK(t, err)
	return parsed
}

// transport trusts the provider and the gateways: servers of one process have one certificate.
func transport() *http.Transport {
	roots := x509.NewCertPool()
	roots.AddCert(idp.server.Certificate())
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
}

// person is someone with a browser.
type person struct {
	*site
	browser *http.Client
	// tamper changes the request of an authorization on its way to the provider.
	tamper func(url.Values)
}

func (s *site) person() *person {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	check.OK(s.t, err)
	p := &person{site: s, browser: &http.Client{Jar: jar, Transport: transport()}}
	p.browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if p.tamper != nil && r.URL.Path == "/auth" {
			query := r.URL.Query()
			p.tamper(query)
			r.URL.RawQuery = query.Encode()
		}
		return nil
	}
	return p
}

// answer is what a browser received.
type answer struct {
	status int
	body   string
	// at is where redirects ended.
	at     *url.URL
	header http.Header
}

func (p *person) do(method, address string, header map[string]string, form url.Values) answer {
	p.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	request, err := http.NewRequestWithContext(p.t.Context(), method, address, body)
	check.OK(p.t, err)
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	got, err := p.browser.Do(request)
	check.OK(p.t, err)
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	check.OK(p.t, err)
	return answer{got.StatusCode, string(text), got.Request.URL, got.Header}
}

// signIn signs in from a place of the page, and returns where that ends.
func (p *person) signIn(at string) answer {
	p.t.Helper()
	form := p.do(http.MethodGet, p.url+"/ui/login?at="+url.QueryEscape(at), nil, nil)
	if form.at.Path != "/login/username" {
		return form
	}
	return p.do(http.MethodPost, idp.server.URL+"/login/username", nil, url.Values{"username": {"test-user@127.0.0.1"},
		"password": {"verysecure"}, "id": {form.at.Query().Get("authRequestID")}})
}

// fromPage are headers of the page's requests.
var fromPage = map[string]string{signin.PageHeader: "1"}

// chats lists the namespace's chats, as the page does.
func (p *person) chats() answer {
	p.t.Helper()
	return p.do(http.MethodGet, p.url+"/v1beta1/namespaces/"+p.namespace+"/chats", fromPage, nil)
}

// resume is what the page does when it starts, and when its token has expired.
func (p *person) resume() answer {
	p.t.Helper()
	return p.do(http.MethodPost, p.url+"/ui/session", fromPage, nil)
}

// cookies are those of the browser.
func (p *person) cookies() []*http.Cookie {
	at, err := url.Parse(p.url)
	check.OK(p.t, err)
	return p.browser.Jar.Cookies(at)
}

func (p *person) setCookie(c *http.Cookie) {
	at, err := url.Parse(p.url)
	check.OK(p.t, err)
	p.browser.Jar.SetCookies(at, []*http.Cookie{c})
}
