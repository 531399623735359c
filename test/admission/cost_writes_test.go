// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// specimen is what is written in the course of a turn of one step.
type specimen struct {
	namespace      string
	pod            actor
	running, ended v1beta1.ChatStatus
	asked, replied *v1beta1.ChatMessage
}

// newSpecimen has the real manager lead a turn, and plays the part of its pod.
func newSpecimen(b *testing.B) *specimen {
	b.Helper()
	const team = "specimen"
	mustCreate(b, administrator, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}})
	mustCreate(b, administrator, inNamespace(chatter.name, team, "parley-chat-user"))
	mustCreate(b, administrator, chattest.In(team, chattest.Config("default", chattest.Default)))
	chat := chattest.In(team, chattest.Chat("c"))
	mustCreate(b, chatter, chat)
	asked := chattest.In(team, chattest.User("c", "m", chattest.Content("Why does node-7 not get ready?")))
	mustCreate(b, chatter, asked)
	stop := startManager(b)
	await(b, "the chat is given to a pod", chat, func() bool { return chat.Status.Generation != nil })
	s := &specimen{namespace: team, running: chat.Status, asked: asked}
	s.pod = actor{name: "the pod", namespace: team, account: podspec.ServiceAccount, pod: chat.Status.Generation.Pod}
	s.replied = result(chat)
	mustCreate(b, s.pod, s.replied.DeepCopy())
	await(b, "the turn has ended", chat,
		func() bool { return chat.Status.Phase == v1beta1.ChatWaiting && chat.Status.History.Length == 2 })
	await(b, "the message says so", asked, func() bool { return asked.Status.State == v1beta1.MessageCommitted })
	stop()
	s.ended = chat.Status
	return s
}

// writer writes what a turn writes, into one variant of the API.
type writer struct {
	variant variant
	turn    *specimen
	chats   [costChats]*writtenChat
	// clients of who writes: of a copy, of the administrator.
	person, pod, manager *http.Client
}

// writtenChat is what the API server has said of a chat and its message.
type writtenChat struct {
	name                        string
	uid                         types.UID
	chatVersion, messageVersion string
}

func newWriter(b *testing.B, v variant, turn *specimen) *writer {
	b.Helper()
	w := &writer{variant: v, turn: turn}
	if v.change != nil {
		c := httpClient(b, administrator)
		w.person, w.pod, w.manager = c, c, c
		w.untilServed(b)
		return w
	}
	w.person, w.pod, w.manager = httpClient(b, chatter), httpClient(b, turn.pod), httpClient(b, manager)
	return w
}

// untilServed waits until the API server serves a copy's kinds: what it says of itself may be earlier.
func (w *writer) untilServed(b *testing.B) {
	b.Helper()
	for _, plural := range []string{"chats", "chatmessages"} {
		err := until(b.Context(), plural+" of "+w.variant.group+" are served", func(ctx context.Context) bool {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url(plural), http.NoBody)
			if err != nil {
				return false
			}
			answer, err := w.person.Do(request)
			return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
		})
		check.OK(b, err)
	}
}

// url of something in the specimen's namespace.
func (w *writer) url(path string) string {
	return fmt.Sprintf("%s/apis/%s/%s/namespaces/%s/%s", strings.TrimSuffix(cluster.Config.Host, "/"),
		w.variant.group, v1beta1.GroupVersion.Version, w.turn.namespace, path)
}

func httpClient(b *testing.B, a actor) *http.Client {
	b.Helper()
	cfg, err := a.config(b.Context())
	check.OK(b, err)
	c, err := rest.HTTPClientFor(cfg)
	check.OK(b, err)
	return c
}

// step is a write of a turn.
type step struct {
	name  string
	body  func(*writer, *writtenChat) []byte
	write func(*testing.B, *writer, *writtenChat, []byte)
}

var steps = []step{
	{"create the chat",
		func(w *writer, c *writtenChat) []byte {
			return w.json(chattest.In(w.turn.namespace, chattest.Chat(c.name)))
		},
		func(b *testing.B, w *writer, c *writtenChat, body []byte) {
			m := w.send(b, w.person, http.MethodPost, "chats", body)
			c.uid, c.chatVersion = m.UID, m.ResourceVersion
		}},
	{"create the message",
		func(w *writer, c *writtenChat) []byte {
			return w.json(chattest.In(w.turn.namespace,
				chattest.User(c.name, c.name+"-m", chattest.Content(w.turn.asked.Spec.Content))))
		},
		func(b *testing.B, w *writer, c *writtenChat, body []byte) {
			c.messageVersion = w.send(b, w.person, http.MethodPost, "chatmessages", body).ResourceVersion
		}},
	{"begin the turn",
		func(w *writer, c *writtenChat) []byte { return w.status(c, w.turn.running) },
		func(b *testing.B, w *writer, c *writtenChat, body []byte) {
			c.chatVersion = w.send(b, w.manager, http.MethodPut, "chats/"+c.name+"/status", body).ResourceVersion
		}},
	{"create the reply",
		func(w *writer, c *writtenChat) []byte { return w.json(w.reply(c)) },
		func(b *testing.B, w *writer, _ *writtenChat, body []byte) {
			w.send(b, w.pod, http.MethodPost, "chatmessages", body)
		}},
	{"end the turn",
		func(w *writer, c *writtenChat) []byte { return w.status(c, w.turn.ended) },
		func(b *testing.B, w *writer, c *writtenChat, body []byte) {
			c.chatVersion = w.send(b, w.manager, http.MethodPut, "chats/"+c.name+"/status", body).ResourceVersion
		}},
	{"settle the message",
		func(w *writer, c *writtenChat) []byte {
			m := chattest.In(w.turn.namespace,
				chattest.User(c.name, c.name+"-m", chattest.Content(w.turn.asked.Spec.Content)))
			m.ResourceVersion, m.Status = c.messageVersion, w.turn.asked.Status
			return w.json(m)
		},
		func(b *testing.B, w *writer, c *writtenChat, body []byte) {
			w.send(b, w.manager, http.MethodPut, "chatmessages/"+c.name+"-m/status", body)
		}},
}

func (w *writer) status(c *writtenChat, status v1beta1.ChatStatus) []byte {
	chat := chattest.In(w.turn.namespace, chattest.Chat(c.name))
	chat.ResourceVersion, chat.UID, chat.Status = c.chatVersion, c.uid, status
	return w.json(chat)
}

// reply is what the pod said in the specimen, said in this chat.
func (w *writer) reply(c *writtenChat) *v1beta1.ChatMessage {
	chat := chattest.In(w.turn.namespace, chattest.Chat(c.name))
	chat.UID, chat.Status = c.uid, w.turn.running
	m := result(chat)
	m.Spec.Parts = w.turn.replied.Spec.Parts
	return m
}

// json is an object as a kind of the variant.
func (w *writer) json(o client.Object) []byte {
	kind := "Chat"
	if _, ok := o.(*v1beta1.ChatMessage); ok {
		kind = "ChatMessage"
	}
	o.GetObjectKind().SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err) // An object of ours.
	}
	own := []byte(`"apiVersion":"` + v1beta1.GroupVersion.String())
	return bytes.Replace(raw, own, []byte(`"apiVersion":"`+w.variant.group+"/"+v1beta1.GroupVersion.Version), 1)
}

// send makes a request and returns what the API server has given the object.
func (w *writer) send(b *testing.B, by *http.Client, method, path string, body []byte) metav1.ObjectMeta {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), method, w.url(path), bytes.NewReader(body))
	check.OK(b, err)
	request.Header.Set("Content-Type", "application/json")
	answer, err := by.Do(request)
	check.OK(b, err)
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= http.StatusMultipleChoices {
		b.Fatalf("%s %s: %s: %s, %v", method, path, answer.Status, said, err)
	}
	var object metav1.PartialObjectMetadata
	check.OK(b, json.Unmarshal(said, &object))
	return object.ObjectMeta
}
