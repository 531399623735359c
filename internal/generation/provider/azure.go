// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/azure"
)

// newAzure sets up OpenAI on Azure.
func newAzure(s settings) (fantasy.Provider, error) {
	client := versioned{s.client, s.spec.APIVersion}
	return azure.New(azure.WithBaseURL(s.spec.BaseURL), azure.WithAPIKey(s.key), azure.WithHeaders(s.headers),
		azure.WithHTTPClient(client), azure.WithUserAgent(userAgent))
}

// versioned adds Azure's api-version to each request, if there is one.
type versioned struct {
	client  *http.Client
	version string
}

// Do sends the request.
func (v versioned) Do(req *http.Request) (*http.Response, error) {
	if v.version != "" {
		query := req.URL.Query()
		query.Set("api-version", v.version)
		req.URL.RawQuery = query.Encode()
	}
	return v.client.Do(req)
}
