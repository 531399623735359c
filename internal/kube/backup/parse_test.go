// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
)

const (
	chatYAML = "apiVersion: parley.dev/v1beta1\nkind: Chat\n" +
		"metadata: {name: c, namespace: ns, uid: u, resourceVersion: '1'}\n"
	secretYAML  = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
	messageJSON = `{"apiVersion":"parley.dev/v1beta1","kind":"ChatMessage","metadata":{"name":"m","namespace":"ns","uid":"v"},` +
		`"spec":{"chatRef":{"name":"c"},"content":"hello"}}`
)

func TestParseReadsDocumentsAndLists(t *testing.T) {
	for name, text := range map[string]string{
		"documents of YAML": chatYAML + "---\n" + messageJSON + "\n---\n---\n" + secretYAML,
		"a list in JSON": `{"apiVersion":"v1","kind":"List","items":[` + messageJSON + `,{"apiVersion":"parley.dev/v1beta1",` +
			`"kind":"Chat","metadata":{"name":"c","namespace":"ns"}},{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}]}`,
		"objects twice": chatYAML + "---\n" + chatYAML + "---\n" + messageJSON + "\n---\n" + secretYAML,
	} {
		t.Run(name, func(t *testing.T) {
			b, err := Parse(strings.NewReader(text))
			check.OK(t, err)
			check.Equal(t, "chats, messages, settings", []int{1, 1, 0}, []int{len(b.Chats), len(b.Messages), len(b.Settings)})
			check.Equal(t, "content", "hello", b.Messages[0].Spec.Content)
		})
	}
}

func TestParseSkipsConfigMapsOfTheCluster(t *testing.T) {
	b, err := Parse(strings.NewReader(`{"apiVersion": "v1", "kind": "List", "items": [
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"}},
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "parley-issuer", "labels": {"parley.dev/component": "workspace"}}},
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "instructions", "labels": {"app": "parley"}}}]}`))
	check.OK(t, err)
	check.Equal(t, "settings", 1, len(b.Settings))
	check.Equal(t, "name", "instructions", b.Settings[0].Metadata.Name)
}

func TestParseRefusesWhatWouldBeLost(t *testing.T) {
	for text, want := range map[string]string{
		chatYAML + "spec: {later: true}\n":                                    `unknown field "later"`,
		strings.Replace(chatYAML, "beta1", "", 1):                             "version is v1, and this release reads v1",
		chatYAML + "---\n" + strings.Replace(chatYAML, "'1'", "'2'", 1):       "contains Chat c twice",
		chatYAML + "---\n" + strings.Replace(chatYAML, "uid: u", "uid: w", 1): "contains Chat c twice",
		"{": "reading an object",
	} {
		_, err := Parse(strings.NewReader(text))
		if err == nil {
			t.Errorf("%q was accepted", text)
			continue
		}
		check.Contains(t, err.Error(), want)
	}
}
