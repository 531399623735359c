// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient_test

import (
	"net/http"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"

	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/check"
)

func TestAPIServerIsCalledWithoutProxyAndCompression(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://proxy.test:3128")
	named := &url.URL{Scheme: "http", Host: "named.test"}
	for name, c := range map[string]struct {
		proxy func(*http.Request) (*url.URL, error)
		want  *url.URL
	}{
		"in a cluster":      {nil, nil},
		"by its kubeconfig": {http.ProxyURL(named), named},
	} {
		given := &rest.Config{Host: "http://api.test", Proxy: c.proxy}
		transport, err := rest.TransportFor(apiclient.InCluster(given))
		check.OK(t, err)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, given.Host, http.NoBody)
		check.OK(t, err)
		got, err := transport.(*http.Transport).Proxy(request)
		if err != nil || (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: the proxy is %v, %v", name, got, err)
		}
		if !transport.(*http.Transport).DisableCompression {
			t.Errorf("%s: it asks for compressed answers", name)
		}
		if c.proxy == nil && given.Proxy != nil {
			t.Errorf("%s: the configuration that was given is changed", name)
		}
	}
}
