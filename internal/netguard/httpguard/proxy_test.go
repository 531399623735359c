// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package httpguard_test

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http/httpproxy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/netguard/hostlist"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
	"parley.dev/parley/test/kit/proxytest"
	"parley.dev/parley/test/modelserver"
)

// model answers every call.
func model(t *testing.T) http.Handler {
	t.Helper()
	models, err := modelserver.New(modelserver.Script{Rules: []modelserver.Rule{{
		Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Hi")}},
	}}})
	check.OK(t, err)
	return models
}

// baseURL is where the protocol's calls of the host begin.
func baseURL(p providertest.Protocol, host string) string {
	if p == providertest.Claude || p == providertest.Gemini {
		return host
	}
	return host + "/v1"
}

// called is how a call of the model at the URL ends.
func called(t *testing.T, p providertest.Protocol, url string, client *http.Client) *v1beta1.GenerationError {
	t.Helper()
	spec := p.Spec(baseURL(p, url))
	err := providertest.Call(t, spec, client)
	if err == nil {
		return nil
	}
	return fault.Classify(err, fault.Subject{Config: "main", Spec: spec, Key: providertest.Key})
}

// through are the settings of a pod whose calls go through the proxy.
func through(proxy *proxytest.Proxy) httpguard.Settings {
	return httpguard.Settings{Loopback: true,
		Proxy: httpproxy.Config{HTTPProxy: proxy.URL, HTTPSProxy: proxy.URL}}
}

// caFile is a file with the certificate.
func caFile(t *testing.T, authority *proxytest.Authority) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.crt")
	writeFile(t, file, authority.PEM)
	return file
}

func writeFile(t *testing.T, file string, content []byte) {
	t.Helper()
	check.OK(t, os.WriteFile(file, content, 0o600))
}

func TestModelsAreCalledThroughTheProxy(t *testing.T) {
	t.Parallel()
	authority := proxytest.NewAuthority(t)
	secure, plain := authority.Server(t, model(t), "models.test"), httptest.NewServer(model(t))
	t.Cleanup(plain.Close)
	for _, p := range providertest.All {
		t.Run(string(p.Provider)+" "+string(p.Transport), func(t *testing.T) {
			proxy := proxytest.New(t, secure.URL)
			settings := through(proxy)
			settings.CAFile = caFile(t, authority)
			if e := called(t, p, "https://models.test", settings.Client()); e != nil {
				t.Errorf("over TLS: %s", e.Text())
			}
			check.Equal(t, "over TLS the proxy is asked", []string{"CONNECT models.test:443"}, proxy.Asked())
			proxy = proxytest.New(t, plain.URL)
			if e := called(t, p, "http://models.test:8000", through(proxy).Client()); e != nil {
				t.Errorf("without TLS: %s", e.Text())
			}
			check.Equal(t, "without TLS the proxy is asked", []string{"POST models.test:8000"}, proxy.Asked())
		})
	}
}

func TestHostsOfNoProxyAreCalledDirectly(t *testing.T) {
	t.Parallel()
	proxy := proxytest.New(t, "http://127.0.0.1:1")
	for name, c := range map[string]struct {
		manager string
		route   httpguard.Route
		direct  bool
	}{
		"none":          {},
		"the manager's": {manager: "other.test,.invalid", direct: true},
		"the model's": {manager: "other.test", route: httpguard.Route{NoProxy: []string{"models.invalid"}},
			direct: true},
		"the manager's as well": {manager: ".invalid", route: httpguard.Route{NoProxy: []string{"other.test"}},
			direct: true},
		"not for another proxy": {manager: ".invalid", route: httpguard.Route{Proxy: proxy.URL}},
		"the model's, own proxy": {
			route: httpguard.Route{Proxy: proxy.URL, NoProxy: []string{"models.invalid:443"}}, direct: true},
	} {
		t.Run(name, func(t *testing.T) {
			settings := through(proxy)
			settings.Proxy.NoProxy = c.manager
			before := len(proxy.Asked())
			e := called(t, providertest.Chat, "https://models.invalid", settings.With(c.route).Client())
			check.Equal(t, "called without the proxy", c.direct, len(proxy.Asked()) == before)
			want := "The proxy could not connect to models.invalid:443 (502)"
			if c.direct {
				want = "The name models.invalid cannot be resolved"
			}
			if e == nil || e.Reason != v1beta1.ErrorProviderUnavailable || !strings.HasPrefix(e.Message, want) {
				t.Errorf("got %+v, want %s", e, want)
			}
		})
	}
}

// Security (an author of ChatModelConfigs): cannot call a forbidden host or address through a proxy, nor have a proxy
// that --model-hosts does not name, or at the pod or its node. Also TestAModelsProxyIsOneOfTheList of
// internal/netguard/httpguard.
func TestNoForbiddenHostIsCalledThroughAProxy(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(model(t))
	t.Cleanup(server.Close)
	proxy := proxytest.New(t, server.URL)
	settings := through(proxy)
	routed := settings.With(httpguard.Route{Proxy: proxy.URL})
	for name, c := range map[string]struct {
		url    string
		client *http.Client
		host   string
	}{
		"metadata service":        {"http://169.254.169.254", settings.Client(), "169.254.169.254"},
		"metadata service by TLS": {"https://169.254.169.254", settings.Client(), "169.254.169.254"},
		"mapped to IPv6":          {"http://[::ffff:169.254.169.254]", settings.Client(), "[::ffff:169.254.169.254]"},
		"by the model's proxy":    {"http://[fd00:ec2::254]", routed.Client(), "[fd00:ec2::254]"},
		"as one number":           {"http://2852039166", settings.Client(), "2852039166"},
		"not on the list of hosts": {"https://elsewhere.test",
			httpguard.Within(settings.Client(), hostlist.List{"models.test"}), "elsewhere.test"},
	} {
		t.Run(name, func(t *testing.T) {
			e := called(t, providertest.Compatible, c.url, c.client)
			if e == nil || e.Reason != v1beta1.ErrorModelConfigInvalid || e.Retryable ||
				!strings.Contains(e.Message, c.host+", where models may not be called") {
				t.Errorf("got %+v", e)
			}
		})
	}
	check.Equal(t, "the proxy is asked", nil, proxy.Asked())
}

func TestAModelsProxyIsOneOfTheList(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(model(t))
	t.Cleanup(server.Close)
	proxy := proxytest.New(t, server.URL)
	host := strings.TrimPrefix(proxy.URL, "http://")
	route := httpguard.Route{Proxy: proxy.URL}
	for name, c := range map[string]struct {
		hosts hostlist.List
		own   bool
		works bool
	}{
		"named":               {hostlist.List{host}, true, true},
		"not named":           {hostlist.List{"proxy.test"}, true, false},
		"no list":             {nil, true, true},
		"the manager's, ever": {hostlist.List{"proxy.test"}, false, true},
	} {
		settings := through(proxy)
		if settings.ProxyHosts = c.hosts; c.own {
			settings = settings.With(route)
		}
		e := called(t, providertest.Compatible, "http://models.test", settings.Client())
		if (e == nil) != c.works || e != nil && !strings.Contains(e.Message, host+", where models may not be called") {
			t.Errorf("%s: %+v", name, e)
		}
	}
	// The pod itself is no proxy, unless loopback addresses are allowed.
	strict := httpguard.Settings{}.With(route)
	e := called(t, providertest.Compatible, "http://models.test", strict.Client())
	if e == nil || e.Reason != v1beta1.ErrorModelConfigInvalid || !strings.Contains(e.Message, "127.0.0.1, where") {
		t.Errorf("a proxy at a loopback address: %+v", e)
	}
}

func TestWhatAProxyRefusesIsTold(t *testing.T) {
	t.Parallel()
	authority := proxytest.NewAuthority(t)
	server := authority.Server(t, model(t), "models.test")
	for name, c := range map[string]struct {
		change    func(*proxytest.Proxy)
		url       string
		reason    v1beta1.ErrorReason
		retryable bool
		says      string
	}{
		"no credentials": {func(p *proxytest.Proxy) { p.User = "jane" }, "https://models.test",
			v1beta1.ErrorModelConfigInvalid, false, "The proxy does not let openai be called (407)"},
		"no credentials, without TLS": {func(p *proxytest.Proxy) { p.User = "jane" }, "http://models.test",
			v1beta1.ErrorModelConfigInvalid, false, "The proxy does not let openai be called (407)"},
		"a rule": {func(p *proxytest.Proxy) { p.Status = 403 }, "https://models.test", v1beta1.ErrorModelConfigInvalid,
			false, "The proxy does not let openai be called (403)"},
		"trouble": {func(p *proxytest.Proxy) { p.Status = 503 }, "https://models.test",
			v1beta1.ErrorProviderUnavailable, true, "The proxy could not connect to models.test:443 (503)"},
		"the connection is refused": {func(p *proxytest.Proxy) { p.URL = "http://127.0.0.1:1" }, "https://models.test",
			v1beta1.ErrorProviderUnavailable, true, "The proxy through which openai is called cannot be reached"},
		"no such name": {func(p *proxytest.Proxy) { p.URL = "http://proxy.invalid" }, "https://models.test",
			v1beta1.ErrorProviderUnavailable, true, "The proxy through which openai is called cannot be reached"},
		"no TLS": {func(p *proxytest.Proxy) { p.URL = strings.Replace(p.URL, "http", "https", 1) }, "https://models.test",
			v1beta1.ErrorTLSFailed, false, "The proxy speaks no TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := proxytest.New(t, server.URL)
			c.change(proxy)
			e := called(t, providertest.Chat, c.url, through(proxy).Client())
			if e == nil || e.Reason != c.reason || e.Retryable != c.retryable || !strings.HasPrefix(e.Message, c.says) {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestAProxyGetsTheCredentialsOfItsURL(t *testing.T) {
	t.Parallel()
	authority := proxytest.NewAuthority(t)
	server := authority.Server(t, model(t), "models.test")
	proxy := proxytest.New(t, server.URL)
	proxy.User, proxy.Password = "jane", "p@ss:word"
	settings := httpguard.Settings{Loopback: true}
	for password, works := range map[string]bool{"p%40ss:word": true, "other": false} {
		route := httpguard.Route{Proxy: strings.Replace(proxy.URL, "://", "://jane:"+password+"@", 1),
			CABundle: authority.PEM}
		e := called(t, providertest.Claude, "https://models.test", settings.With(route).Client())
		if (e == nil) != works {
			t.Errorf("with %s: %+v", password, e)
		}
	}
}

func TestAnAuthorityIsTrustedIfItIsNamed(t *testing.T) {
	t.Parallel()
	authority, other := proxytest.NewAuthority(t), proxytest.NewAuthority(t)
	server := authority.Server(t, model(t), "models.test")
	proxy := proxytest.New(t, server.URL)
	for name, c := range map[string]struct {
		file   *proxytest.Authority
		bundle []byte
		trusts bool
	}{
		"nobody's":            {nil, nil, false},
		"another's":           {other, other.PEM, false},
		"the pod's":           {authority, nil, true},
		"the model's":         {nil, authority.PEM, true},
		"the model's as well": {other, authority.PEM, true},
		"the pod's as well":   {authority, other.PEM, true},
	} {
		settings := through(proxy)
		if c.file != nil {
			settings.CAFile = caFile(t, c.file)
		}
		for _, p := range []providertest.Protocol{providertest.Responses, providertest.Gemini} {
			e := called(t, p, "https://models.test", settings.With(httpguard.Route{CABundle: c.bundle}).Client())
			if (e == nil) != c.trusts || e != nil && (e.Reason != v1beta1.ErrorTLSFailed || e.Retryable) {
				t.Errorf("%s, %s: %+v", name, p.Provider, e)
			}
		}
	}
}

func TestTheSystemsAuthoritiesStayTrusted(t *testing.T) {
	system, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal("reading the authorities of the system: ", err)
	}
	private := proxytest.NewAuthority(t)
	trusted := httpguard.Trusted(httpguard.Settings{CAFile: caFile(t, private)})
	want := system.Clone()
	want.AppendCertsFromPEM(private.PEM)
	if !trusted.Equal(want) {
		t.Error("a private authority is not trusted in addition to those of the system")
	}
	if httpguard.Trusted(httpguard.Settings{CAFile: filepath.Join(t.TempDir(), "missing")}) != nil {
		t.Error("without a private authority it is not left to the system")
	}
}

func TestANewCAFileCountsAtOnce(t *testing.T) {
	t.Parallel()
	authority, other := proxytest.NewAuthority(t), proxytest.NewAuthority(t)
	server := authority.Server(t, model(t), "models.test")
	settings := through(proxytest.New(t, server.URL))
	settings.CAFile = filepath.Join(t.TempDir(), "ca.crt")
	client := settings.Client()
	call := func() bool {
		return called(t, providertest.Chat, "https://models.test", client) == nil
	}
	if call() {
		t.Error("without the file the server is trusted")
	}
	writeFile(t, settings.CAFile, []byte("no certificate"))
	if call() {
		t.Error("with a file of something else the server is trusted")
	}
	writeFile(t, settings.CAFile, slices.Concat(other.PEM, authority.PEM))
	if !call() {
		t.Error("the file has come, and the server is not trusted")
	}
	writeFile(t, settings.CAFile, other.PEM)
	check.OK(t, os.Chtimes(settings.CAFile, time.Time{}, time.Now().Add(time.Minute)))
	if call() {
		t.Error("the authority is gone, and the server is trusted")
	}
}
