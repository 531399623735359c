// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelconfig

import (
	"net/url"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/netguard/hostlist"
)

// ownURLs are where the providers themselves serve their models.
var ownURLs = map[v1beta1.ModelProvider]string{
	v1beta1.ProviderOpenAI:     "https://api.openai.com",
	v1beta1.ProviderAnthropic:  "https://api.anthropic.com",
	v1beta1.ProviderGoogle:     "https://generativelanguage.googleapis.com",
	v1beta1.ProviderOpenRouter: "https://openrouter.ai",
	v1beta1.ProviderVercel:     "https://ai-gateway.vercel.sh",
}

// ForbiddenHost is the host, or the proxy, that the configuration leads to, if models may not be called there; else it
// is empty. An empty list forbids none but addresses of the node, and those of the pod unless loopback allows them.
// What a name resolves to, and the region of Bedrock that the environment of a pod names, is seen only when the model
// is called.
func ForbiddenHost(spec *v1beta1.ChatModelConfigSpec, hosts hostlist.List, loopback bool) string {
	urls := []string{urlOf(spec)}
	if spec.Proxy != nil {
		urls = append(urls, spec.Proxy.URL)
	}
	for _, raw := range urls {
		target, err := url.Parse(raw)
		if err != nil || target.Host == "" {
			continue
		}
		if hostlist.ForbiddenAddress(target, loopback) || len(hosts) > 0 && !hosts.Names(target) {
			return target.Host
		}
	}
	return ""
}

// urlOf is where the model of the configuration is called; empty if that is not known.
func urlOf(spec *v1beta1.ChatModelConfigSpec) string {
	switch {
	case spec.BaseURL != "":
		return spec.BaseURL
	case spec.VertexAI != nil:
		return "https://" + spec.VertexAI.Host()
	case spec.Provider == v1beta1.ProviderBedrock && spec.Region != "":
		return "https://bedrock-runtime." + spec.Region + ".amazonaws.com"
	}
	return ownURLs[spec.Provider]
}
