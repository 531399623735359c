// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// tells creates chat c with so many messages of people and the model in turn, each of a text that begins with its
// number, and returns their names.
func (d *door) tells(messages int, text string) (chat *v1beta1.Chat, names []string) {
	d.t.Helper()
	chat = chattest.In(d.namespace, chattest.Chat("c"))
	d.create(chat)
	h := &chat.Status.History
	for i := range messages {
		said := fmt.Sprintf("%d%s", i, text)
		if i%2 == 0 {
			d.commits(chat, chattest.User("c", fmt.Sprintf("q-%d", i), chattest.Content(said)))
		} else {
			chat.Status.Generation = &v1beta1.GenerationStatus{Attempt: 1, Action: v1beta1.ActionGenerateAssistant,
				Pod: "pod-1", StartedAt: metav1.NowMicro()}
			m := chattest.Answer(chat, chattest.Says(said))
			chat.Status.Generation = nil
			d.create(m)
			h.Version, h.Head, h.Length = h.Version+1, m.Name, h.Length+1
		}
		names = append(names, h.Head)
	}
	chat.Status.Phase = v1beta1.ChatWaiting
	d.writesStatus(chat)
	return chat, names
}

// commits creates a person's message and puts it at the head.
func (d *door) commits(chat *v1beta1.Chat, m *v1beta1.ChatMessage) {
	d.t.Helper()
	h := &chat.Status.History
	d.create(chattest.In(d.namespace, m))
	m.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageCommitted, ChatUID: string(chat.UID), Parent: h.Head,
		Index: new(h.Length), HistoryVersion: h.Version + 1}
	check.OK(d.t, cluster.Client.Status().Update(d.t.Context(), m))
	h.Version, h.Head, h.Length = h.Version+1, m.Name, h.Length+1
}

func (d *door) writesStatus(chat *v1beta1.Chat) {
	d.t.Helper()
	check.OK(d.t, cluster.Client.Status().Update(d.t.Context(), chat))
}

// told are the indexes and names of the messages that an answer holds.
func told(a answer) (indexes []int, names []string) {
	messages, _ := a.body["messages"].([]any)
	for _, m := range messages {
		entry, _ := m.(map[string]any)
		index, _ := entry["index"].(float64)
		message, _ := entry["message"].(map[string]any)
		indexes, names = append(indexes, int(index)), append(names, fmt.Sprint(message["name"]))
	}
	return indexes, names
}

func TestAHistoryIsReadFromItsEndBack(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-viewer")
	_, names := d.tells(5, ". Hi.")
	for _, c := range []struct {
		query string
		want  []int
	}{
		{"", []int{0, 1, 2, 3, 4}},
		{"?limit=2", []int{3, 4}},
		{"?limit=2&before=" + names[3], []int{1, 2}},
		{"?before=" + names[1], []int{0}},
		{"?before=" + names[0], nil},
	} {
		indexes, got := told(d.does(http.StatusOK, "GET", "/chats/c/messages"+c.query, ""))
		if !slices.Equal(indexes, c.want) {
			t.Errorf("%q tells of %v", c.query, indexes)
		}
		for i, index := range indexes {
			if got[i] != names[index] {
				t.Errorf("%q tells of %s at %d, where %s is", c.query, got[i], index, names[index])
			}
		}
	}
}

func TestAPieceOfAHistoryHasABound(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-viewer")
	d.tells(8, strings.Repeat("a", 900<<10))
	if indexes, _ := told(d.does(http.StatusOK, "GET", "/chats/c/messages", "")); !slices.Equal(indexes,
		[]int{3, 4, 5, 6, 7}) {
		t.Errorf("told are %v", indexes)
	}
}

func TestAHistoryEndsWhereAMessageIsGone(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	_, names := d.tells(5, ". Hi.")
	d.does(http.StatusNoContent, "DELETE", "/chats/c/messages/"+names[2], "")
	if indexes, _ := told(d.does(http.StatusOK, "GET", "/chats/c/messages", "")); !slices.Equal(indexes, []int{3, 4}) {
		t.Errorf("told are %v", indexes)
	}
	d.refuses(http.StatusNotFound, "NotFound", names[2], "GET", "/chats/c/messages?before="+names[2], "")
}

func TestInvalidHistoryPositionIsRejected(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	d.tells(2, ". Hi.")
	d.create(chattest.In(d.namespace, chattest.User("c", "waits", chattest.Content("Hi."))))
	d.create(chattest.In(d.namespace, chattest.User("other", "others", chattest.Content("Hi."))))
	d.create(chattest.In(d.namespace, chattest.User("c", "note", chattest.Content("Hi."), func(m *v1beta1.ChatMessage) {
		m.Spec.Visibility = v1beta1.VisibleToUsers
	})))
	for query, words := range map[string]string{
		"?before=waits":                   "message waits is not in the history of chat c",
		"?before=others":                  "message others is not in the history of chat c",
		"?before=note":                    "message note is not in the history of chat c",
		"?before=..%2f..%2fsecrets%2fkey": "before",
		"?before=Q-0":                     "before",
		"?limit=0":                        "limit",
		"?limit=201":                      "limit",
		"?limit=many":                     "limit",
		"?after=q-0":                      "after",
	} {
		d.refuses(http.StatusBadRequest, "BadRequest", words, "GET", "/chats/c/messages"+query, "")
	}
	d.refuses(http.StatusNotFound, "NotFound", `"nobody" not found`, "GET", "/chats/nobody/messages", "")
	d.refuses(http.StatusNotFound, "NotFound", `"nobody" not found`, "GET", "/chats/c/messages?before=nobody", "")
}

func TestNobodyReadsTheHistoryOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	theirs := open(t, "parley-chat-viewer")
	theirs.tells(2, ". Hi.")
	ours := open(t, "parley-chat-user")
	ours.tells(2, ". Hi.")
	as := *theirs
	as.token = ours.token
	for _, path := range []string{"/chats/c/messages", "/chats/c/messages?before=q-0"} {
		as.refuses(http.StatusForbidden, "Forbidden", `in the namespace "`+theirs.namespace+`"`, "GET", path, "")
	}
	ours.refuses(http.StatusBadRequest, "BadRequest", "chat", "GET",
		"/chats/..%2f..%2f"+theirs.namespace+"%2fchats%2fc/messages", "")
}

func TestNewChatsHaveTheirChoices(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-template-author")
	d.account("bert", "parley-chat-user")
	d.create(&v1beta1.ChatClass{ObjectMeta: d.meta("ops"), Spec: v1beta1.ChatClassSpec{FirstPrompts: []string{"Why?"}}})
	for name, labels := range map[string]map[string]string{"go": {v1beta1.LabelWorkspaceTemplate: "true"}, "other": nil} {
		template := &corev1.PodTemplate{ObjectMeta: d.meta(name)}
		template.Labels, template.Annotations = labels, map[string]string{v1beta1.AnnotationDescription: "A toolchain."}
		template.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
		d.create(template)
	}
	got := d.does(http.StatusOK, "GET", "/templates", "")
	if diff := cmp.Diff(map[string]any{"templates": []any{map[string]any{"name": "go", "description": "A toolchain."}}},
		got.body); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
	user := *d
	user.token = d.tokenOf("bert")
	user.refuses(http.StatusForbidden, "Forbidden", "podtemplates", "GET", "/templates", "")
	if got := user.does(http.StatusOK, "GET", "/chatclasses", ""); !strings.Contains(got.text, `"firstPrompts":["Why?"]`) {
		t.Errorf("classes are %s", got.text)
	}
	blank := &v1beta1.ChatClass{ObjectMeta: d.meta("blank"), Spec: v1beta1.ChatClassSpec{FirstPrompts: []string{" "}}}
	if err := cluster.Client.Create(t.Context(), blank); err == nil || !strings.Contains(err.Error(), "firstPrompts") {
		t.Errorf("a blank first prompt: %v", err)
	}
}

func TestOnlyWhoMayListsTheNamespaces(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	above := *d
	above.url = strings.TrimSuffix(d.url, "/"+d.namespace)
	above.refuses(http.StatusForbidden, "Forbidden", "cannot list", "GET", "", "")
}

func TestServedNamespacesAreListedByRightToChats(t *testing.T) {
	t.Parallel()
	viewer := open(t, "parley-chat-viewer")
	list := func(served ...string) func() string {
		d := open(t, "parley-chat-viewer", func(o *rest.Options) { o.Namespaces = served })
		d.token, d.url = viewer.token, strings.TrimSuffix(d.url, "/"+d.namespace)
		return func() string {
			got := d.does(http.StatusOK, "GET", "", "").body
			return fmt.Sprint(got["namespaces"], got["more"])
		}
	}
	some := list("default", viewer.namespace)
	waiting.Until(t, time.Minute, "the binding counts", func() bool {
		return some() == fmt.Sprintf("[%s] <nil>", viewer.namespace)
	})
	many := list(append(slices.Repeat([]string{"default"}, 50), viewer.namespace)...)
	check.Equal(t, "the list of 51", "[] true", many())
}
