// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// lister allows an account to list and watch the chats of the namespace.
func (in *installation) lister(account string) *rbacv1.RoleBinding {
	in.create(&rbacv1.Role{ObjectMeta: in.meta("lister"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"parley.dev"}, Resources: []string{"chats"}, Verbs: []string{"list", "watch"}}}})
	return cluster.Bind(in.t, in.namespace, account, "Role", "lister")
}

// summaryOf is the newest that was told of a chat.
func summaryOf(t *testing.T, events []event, name string) (s stream.Summary) {
	t.Helper()
	for _, e := range events {
		var told stream.Summary
		check.OK(t, json.Unmarshal([]byte(e.Data), &told))
		if told.Name == name && e.Name != stream.EventDeleted {
			s = told
		}
	}
	return s
}

func TestAListOfChatsIsFollowedAndResumed(t *testing.T) {
	t.Parallel()
	in := install(t, func(g *Gateway) { g.lease.every = 20 * time.Millisecond })
	binding := in.lister("viewer")
	a := in.converse("a")
	below := in.meta("b")
	below.Annotations = map[string]string{v1beta1.AnnotationCreatedBy: "jane", "private": "private"}
	in.create(&v1beta1.Chat{ObjectMeta: below,
		Spec: v1beta1.ChatSpec{ParentRef: &v1beta1.ChatReference{Name: "a"}, Prompt: "private"}})
	waitUntil(t, "the gateway knows them", func() bool { return len(in.gateway.chats.List(in.namespace)) == 2 })
	l := in.listenAt(in.list(), "")
	events := l.waitName(stream.EventSynced)
	if len(events) != 3 || summaryOf(t, events, "b").Parent != "a" ||
		summaryOf(t, events, "b").CreatedBy != "jane" ||
		strings.Contains(events[0].Data+events[1].Data, "private") {
		t.Errorf("got %+v", events)
	}
	a.chat.Status.Title, a.chat.Status.Phase, a.chat.Status.LastReply = "Networks", v1beta1.ChatWaiting,
		"Look at the node's"
	a.chat.Status.ChatClass = &v1beta1.AppliedChatClass{Name: "coder", UID: "u", Generation: 1}
	a.commit()
	events = l.wait("the change", func(e event) bool { return strings.Contains(e.Data, "Networks") })
	if got := summaryOf(t, events, "a"); got.LastReply != "Look at the node's" || got.Phase != v1beta1.ChatWaiting ||
		got.Class != "coder" {
		t.Errorf("got %+v", got)
	}
	check.OK(t, cluster.Client.Delete(t.Context(), a.chat))
	l.waitName(stream.EventDeleted)
	back := in.listenAt(in.list()+"&lastEventId="+events[len(events)-1].ID, "").waitName(stream.EventSynced)
	if len(back) != 2 || back[0].Name != stream.EventDeleted || !strings.Contains(back[0].Data, `"a"`) {
		t.Errorf("who comes back is told %+v", back)
	}
	check.OK(t, cluster.Client.Delete(t.Context(), binding))
	l.wait("the end", func(e event) bool {
		return e.Name == stream.EventClosing && strings.Contains(e.Data, "may not list and watch chats")
	})
	<-l.done
}

func TestListOfChatsNeedsItsRight(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	in.lister("second")
	for name, tt := range map[string]struct {
		token, path string
		want        int
	}{
		"may follow chats only": {in.token, in.list(), http.StatusForbidden},
		"may list":              {in.tokenOf("second"), in.list(), http.StatusOK},
		"no known way to watch": {in.tokenOf("second"), in.list() + "=no", http.StatusBadRequest},
		"a bad id":              {in.tokenOf("second"), in.list() + "&lastEventId=1.0.1", http.StatusBadRequest},
		"elsewhere": {in.tokenOf("second"), "/v1beta1/namespaces/default/chats?watch=true",
			http.StatusForbidden},
	} {
		resp := in.get(t.Context(), tt.path, tt.token, nil)
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%s: %s, want %d", name, resp.Status, tt.want)
		}
	}
}
