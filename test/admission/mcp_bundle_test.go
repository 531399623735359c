// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/chattest"
)

// signedBy is a chat of a server whose certificate is of an authority in the ConfigMap.
func signedBy(configMap string) *v1alpha1.Chat {
	chat := newChat(unique("chat"))
	chat.Spec.MCPServers = server(func(s *v1alpha1.MCPServer) {
		s.CABundleFrom = &v1alpha1.MCPCABundleSource{ConfigMapKeyRef: inConfigMap(configMap, "ca.crt")}
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
	class := func() *v1alpha1.ChatClass {
		return chattest.In(ns, chattest.Class(unique("class"), func(s *v1alpha1.ChatClassSpec) {
			s.Defaults.MCPServers = signedBy(own).Spec.MCPServers
		}))
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
