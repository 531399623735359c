// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/azure"
	"charm.land/fantasy/providers/openai"
)

// newAzure sets up OpenAI on Azure. fantasy's own package asks a list of models whether the responses API may be used,
// and nobody lists the names that people give to their deployments; so that API is set up as OpenAI's with Azure's way
// to name the key.
func newAzure(s settings) (fantasy.Provider, error) {
	client := versioned{s.client, s.spec.APIVersion}
	s.headers["Api-Key"] = s.key
	return openai.New(openai.WithName(azure.Name), openai.WithBaseURL(azureURL(s.spec.BaseURL)),
		openai.WithHeaders(s.headers),
		openai.WithHTTPClient(client), openai.WithUserAgent(userAgent), openai.WithUseResponsesAPI(),
		openai.WithResponsesAPIFunc(anyModel))
}

// azureHost is how Azure names the host of a resource; the resource is the first group.
var azureHost = regexp.MustCompile(
	`^https?://([a-zA-Z0-9-]+)\.(?:openai|cognitiveservices|services\.ai)\.azure\.com(?:/.*)?$`)

// azureURL is where a resource speaks OpenAI's protocol; any other URL is one already.
func azureURL(base string) string {
	if m := azureHost.FindStringSubmatch(base); m != nil {
		return fmt.Sprintf("https://%s.openai.azure.com/openai/v1", m[1])
	}
	return strings.TrimSuffix(base, "/")
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
