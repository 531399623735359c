// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"

	"parley.dev/parley/api/v1beta1"
)

// azureHost is how Azure names the host of a resource; the resource is the first group.
var azureHost = regexp.MustCompile(`^([a-zA-Z0-9-]+)\.(?:openai|cognitiveservices|services\.ai)\.azure\.com$`)

// OpenAI returns where one of OpenAI's protocols is spoken for a configuration, and the header with the key. base is
// the URL of a provider without a baseURL, path that of the protocol below it.
func OpenAI(spec *v1beta1.ChatModelConfigSpec, key, base string, path ...string) (at string, header map[string]string,
	err error) {
	to, err := url.Parse(cmp.Or(spec.BaseURL, base))
	if err != nil {
		return "", nil, fmt.Errorf("reading baseURL: %w", err)
	}
	header = map[string]string{}
	if spec.Provider == v1beta1.ProviderAzure {
		to = azureURL(to, spec.APIVersion)
	}
	switch {
	case key == "":
	case spec.Provider == v1beta1.ProviderAzure:
		header["Api-Key"] = key
	default:
		header["Authorization"] = "Bearer " + key
	}
	return to.JoinPath(path...).String(), header, nil
}

// azureURL is where a resource of Azure speaks OpenAI's protocols. Any other URL, such as that of a proxy, is one where
// they are spoken.
func azureURL(base *url.URL, version string) *url.URL {
	if m := azureHost.FindStringSubmatch(base.Host); m != nil {
		base = &url.URL{Scheme: "https", Host: m[1] + ".openai.azure.com", Path: "/openai/v1"}
	}
	if version != "" {
		query := base.Query()
		query.Set("api-version", version)
		base.RawQuery = query.Encode()
	}
	return base
}
