// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// networked is a model configuration without a key, with a proxy or a CA bundle.
func networked(change func(*v1beta1.ChatModelConfigSpec)) *v1beta1.ChatModelConfig {
	return chattest.In(ns, chattest.Config(unique("model"), change))
}

// proxied is one whose proxy gets the credentials of the Secret, if one is named.
func proxied(url, secret string, noProxy ...string) *v1beta1.ChatModelConfig {
	return networked(func(s *v1beta1.ChatModelConfigSpec) {
		s.Proxy = &v1beta1.ModelProxy{URL: url, NoProxy: noProxy}
		if secret != "" {
			s.Proxy.SecretRef = &v1beta1.SecretReference{Name: secret}
		}
	})
}

// trusting is one that trusts the authorities in the Secret or in the ConfigMap.
func trusting(secret, configMap string) *v1beta1.ChatModelConfig {
	return networked(func(s *v1beta1.ChatModelConfigSpec) {
		s.CABundleFrom = &v1beta1.CABundleSource{}
		if secret != "" {
			s.CABundleFrom.SecretKeyRef = &v1beta1.SecretKeyReference{Name: secret, Key: "ca.crt"}
		}
		if configMap != "" {
			s.CABundleFrom.ConfigMapKeyRef = new(inConfigMap(configMap, "ca.crt"))
		}
	})
}

// Security (an author of ChatModelConfigs): cannot use a Secret or a ConfigMap that they may not get, for the
// credentials of a proxy or for authorities.
func TestProxySecretReferenceRequiresReadAccess(t *testing.T) {
	t.Parallel()
	mayGet(t, owner, "secrets", "proxy-login", "proxy-ca")
	mayGet(t, owner, "configmaps", "corp-ca")
	awaitAllowed(t.Context(), t, owner, creates(proxied("http://proxy.corp:3128", "proxy-login")))
	awaitAllowed(t.Context(), t, owner, creates(trusting("", "corp-ca")))
	foreign, foreignCA := proxied("http://proxy.corp:3128", "payroll"), trusting("", "internal")
	mustCreate(t, administrator, foreign)
	mustCreate(t, administrator, foreignCA)
	try(t, []write{
		{owner, "names a proxy", creates(proxied("http://proxy.corp:3128", "")), ""},
		{owner, "names a proxy with credentials that it may read",
			creates(proxied("https://[fd12::1]:3128/", "proxy-login")), ""},
		{owner, "names credentials that it may not read", creates(proxied("http://proxy.corp:3128", "payroll")),
			"owner may not get Secret payroll, which proxy.secretRef names"},
		{owner, "leads credentials elsewhere that it may not read",
			patches(foreign, `{"spec":{"proxy":{"url":"http://attacker.example"}}}`), "owner may not get Secret payroll"},
		{owner, "labels a configuration with others' credentials", patches(foreign, `{"metadata":{"labels":{"a":"b"}}}`), ""},
		{owner, "takes others' credentials away", patches(foreign, `{"spec":{"proxy":null}}`), ""},
		{owner, "trusts authorities in a Secret that it may read", creates(trusting("proxy-ca", "")), ""},
		{owner, "has a Secret mounted that it may not read", creates(trusting("payroll", "")),
			"owner may not get Secret payroll, which caBundleFrom names"},
		{owner, "trusts authorities in a ConfigMap that it may read", creates(trusting("", "corp-ca")), ""},
		{owner, "names a ConfigMap that it may not read", creates(trusting("", "internal")),
			"owner may not get ConfigMap internal, which caBundleFrom names"},
		{owner, "changes one whose ConfigMap it may not read", patches(foreignCA, `{"spec":{"model":"other"}}`),
			"owner may not get ConfigMap internal"},
	})
}

func TestAProxyHasNoPasswordAndNoPath(t *testing.T) {
	t.Parallel()
	const noProxy = "an entry of noProxy is a host"
	var writes []write
	for _, url := range []string{"http://jane:secret@proxy.corp", "proxy.corp:3128", "socks5://proxy.corp",
		"http://proxy.corp/path", "http://proxy.corp?a=b", "http://proxy.corp#a", "http://pro xy", "http://:3128",
		"http://[::1"} {
		writes = append(writes, write{administrator, "names a proxy at " + url, creates(proxied(url, "")),
			"url begins with http:// or https:// and a host, and has no user and no path"})
	}
	try(t, append(writes,
		write{administrator, "names no proxy", creates(proxied("", "")), "set url, noProxy or both"},
		write{administrator, "names credentials for none", creates(proxied("", "login", "a")),
			"secretRef is for the proxy at url"},
		write{administrator, "names a path as the Secret", creates(proxied("http://proxy.corp", "../a")),
			"the name of a Secret has"},
		write{administrator, "calls some hosts directly",
			creates(proxied("", "", "ollama.models:11434", ".svc", "10.0.0.0/8", "fd12::/16", "[fd12::1]:80", "*")), ""},
		write{administrator, "lists hosts in one entry", creates(proxied("", "", "a.example,b.example")), noProxy},
		write{administrator, "lists a host with a space", creates(proxied("", "", "a.example ")), noProxy},
		write{administrator, "lists a long host", creates(proxied("", "", strings.Repeat("a", 254))),
			"may not be more than 253"},
		write{administrator, "names no authorities", creates(trusting("", "")),
			"set exactly one of configMapKeyRef and secretKeyRef"},
		write{administrator, "names authorities twice", creates(trusting("a", "b")), "set exactly one of"},
		write{administrator, "names a path as the ConfigMap", creates(trusting("", "../a")), "the name of a ConfigMap has"},
	))
}

// signedBy is a chat of a server whose certificate is of an authority in the ConfigMap.
func signedBy(configMap string) *v1beta1.Chat {
	chat := newChat(unique("chat"))
	chat.Spec.MCPServers = server(func(s *v1beta1.MCPServer) {
		s.CABundleFrom = &v1beta1.MCPCABundleSource{ConfigMapKeyRef: inConfigMap(configMap, "ca.crt")}
	})
	return chat
}

func TestCABundleReferenceRequiresReadAccess(t *testing.T) {
	t.Parallel()
	const own = "authorities"
	mayGet(t, chatter, "configmaps", own)
	awaitAllowed(t.Context(), t, chatter, creates(signedBy(own)))
	foreign := signedBy("internal")
	mustCreate(t, administrator, foreign)
	plain := signedBy(own)
	plain.Spec.MCPServers[0].URL = "http://mcp.example.com/"
	class := func() *v1beta1.ChatClass {
		return newClass(func(s *v1beta1.ChatClassSpec) {
			s.Defaults.MCPServers = signedBy(own).Spec.MCPServers
		})
	}
	const refusal = "chatter may not get every ConfigMap that is named here"
	try(t, []write{
		{chatter, "names a ConfigMap that they may read", creates(signedBy(own)), ""},
		{chatter, "names one that they may not read", creates(signedBy("internal")), refusal},
		{chatter, "names another one in somebody else's entry", patches(foreign, `{"spec":{"mcpServers":[{"name":"github",`+
			`"url":"https://a.example.com","caBundleFrom":{"configMapKeyRef":{"name":"private","key":"a"}}}]}}`), refusal},
		{chatter, "changes a chat whose entry somebody else wrote", patches(foreign, `{"spec":{"title":"Other"}}`), ""},
		{administrator, "names a ConfigMap that is a path", creates(signedBy("../secrets")),
			"the name of a ConfigMap has lower-case letters"},
		{administrator, "trusts authorities without TLS", creates(plain), "caBundleFrom is for a url of https"},
		{curator, "names one for all chats of a class", creates(class()), "may not get the ConfigMaps of namespace"},
		{administrator, "names one for all chats of a class", creates(class()), ""},
	})
}
