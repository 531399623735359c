// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// tokened is a chat of that age whose server gets keys of Secrets.
func tokened(age time.Duration, refs ...v1beta1.SecretKeyReference) v1beta1.Chat {
	created := metav1.NewTime(time.Unix(1_000_000, 0).Add(-age))
	chat := v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: created}}
	server := v1beta1.MCPServer{}
	for _, ref := range refs {
		server.HeadersFrom = append(server.HeadersFrom, v1beta1.MCPHeaderSource{SecretKeyRef: ref})
	}
	chat.Spec.MCPServers = []v1beta1.MCPServer{server}
	return chat
}

func TestServerKeysAreMountedWithModelKeys(t *testing.T) {
	got := JoinKeys([]v1beta1.SecretKeyReference{key("openai", "k")},
		KeysOfServers(nil, []v1beta1.Chat{
			tokened(0, key("tracker", "b"), key("tracker", "a")),
			tokened(0, key("tracker", "a"), key("../token", "a"), key("tracker", "..")), {},
		}))
	want := []v1beta1.SecretKeyReference{key("openai", "k"), key("tracker", "a"), key("tracker", "b")}
	check.Equal(t, "got", want, got)
}

func TestServerSecretLimitKeepsKeysOfOlderChats(t *testing.T) {
	var chats []v1beta1.Chat
	for i := range maxServerSecrets + 10 {
		chats = append(chats, tokened(time.Duration(i), key(fmt.Sprintf("s%02d", i), "k")))
	}
	class := v1beta1.ChatClass{Spec: v1beta1.ChatClassSpec{Defaults: tokened(0, key("class", "k")).Spec.ChatSettings}}
	keys := KeysOfServers([]v1beta1.ChatClass{class}, append(chats, tokened(time.Hour, key("oldest", "k"))))
	if len(keys) != maxServerSecrets || keys[0].Name != "class" || keys[1].Name != "oldest" || keys[2].Name != "s73" {
		t.Errorf("got %d keys, first %v", len(keys), keys[:3])
	}
}
