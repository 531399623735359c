// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/internal/text/compose"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
)

// Security (a client of the gateway): can only do what its token's owner may do by kubectl, with the rules and errors
// of the API server. Also TestForbiddenRequestReturnsAPIServerMessage of internal/gateway/rest.
func TestChatOperationsFollowCallerRole(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	made := d.does(http.StatusCreated, "POST", "/chats", `{"name":"c","spec":{"prompt":"hello"},"labels":{"team":"blue"}}`)
	if made.body["kind"] != "Chat" || made.field("spec", "prompt") != "hello" ||
		made.field("metadata", "labels", "team") != "blue" || made.field("metadata", "managedFields") != nil {
		t.Errorf("created %s", made.text)
	}
	d.refuses(http.StatusConflict, "AlreadyExists", `"c" already exists`, "POST", "/chats", `{"name":"c","spec":{}}`)
	if got := d.does(http.StatusCreated, "POST", "/chats", `{"spec":{}}`).field("metadata", "name"); !strings.HasPrefix(
		got.(string), "chat-") {
		t.Errorf("the name is %v", got)
	}
	page := d.does(http.StatusOK, "GET", "/chats?limit=1", "")
	rest := d.does(http.StatusOK, "GET", "/chats?continue="+page.body["continue"].(string), "")
	if len(page.body["chats"].([]any)) != 1 || len(rest.body["chats"].([]any)) != 1 || rest.body["continue"] != nil {
		t.Errorf("listed %s, then %s", page.text, rest.text)
	}
	version := d.does(http.StatusOK, "GET", "/chats/c", "").field("metadata", "resourceVersion").(string)
	changed := d.does(http.StatusOK, "PATCH", "/chats/c", `{"resourceVersion":"`+version+`","spec":{"title":"A","suspend":true}}`)
	if changed.field("spec", "title") != "A" || changed.field("spec", "prompt") != "hello" {
		t.Errorf("changed %s", changed.text)
	}
	d.refuses(http.StatusConflict, "Conflict", "modified", "PATCH", "/chats/c",
		`{"resourceVersion":"`+version+`","spec":{"title":"B"}}`)
	if got := d.does(http.StatusOK, "PATCH", "/chats/c", `{"spec":{"title":null}}`); got.field("spec", "title") != nil {
		t.Errorf("changed %s", got.text)
	}
	d.does(http.StatusNoContent, "DELETE", "/chats/c", "")
	d.refuses(http.StatusNotFound, "NotFound", `"c" not found`, "GET", "/chats/c", "")
}

func TestMessagesAreSentEditedPromotedAndDeleted(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	d.create(&v1beta1.Chat{ObjectMeta: d.meta("c")})
	d.create(&v1beta1.Chat{ObjectMeta: d.meta("other")})
	sent := d.does(http.StatusCreated, "POST", "/chats/c/messages",
		`{"name":"m","content":"Hi.","whenBusy":"Queue","modelConfig":"small","reasoningEffort":"Low"}`)
	if sent.field("spec", "chatRef", "name") != "c" || sent.field("spec", "role") != "User" ||
		sent.field("spec", "modelConfigRef", "name") != "small" || sent.field("spec", "reasoningEffort") != "Low" {
		t.Errorf("sent %s", sent.text)
	}
	settings := d.does(http.StatusCreated, "POST", "/chats/c/messages", `{"content":"Hi.","output":{"schema":{"type":"object"}},
		"toolChoice":{"type":"Tool","tool":"weather"},"stop":["END"]}`)
	if settings.field("spec", "output", "schema", "type") != "object" ||
		settings.field("spec", "toolChoice", "tool") != "weather" ||
		len(settings.field("spec", "stop").([]any)) != 1 {
		t.Errorf("sent %s", settings.text)
	}
	d.refuses(http.StatusBadRequest, "BadRequest", "toolChoice", "POST", "/chats/c/messages",
		`{"content":"Hi.","toolChoice":{"name":"weather"}}`)
	d.refuses(http.StatusConflict, "AlreadyExists", "m", "POST", "/chats/c/messages", `{"name":"m","content":"Hi."}`)
	version := sent.field("metadata", "resourceVersion").(string)
	edited := d.does(http.StatusOK, "PATCH", "/chats/c/messages/m", `{"resourceVersion":"`+version+`","content":"Ho."}`)
	if edited.field("spec", "content") != "Ho." || edited.field("metadata", "generation") != float64(2) {
		t.Errorf("edited %s", edited.text)
	}
	d.refuses(http.StatusConflict, "Conflict", "modified", "PATCH", "/chats/c/messages/m",
		`{"resourceVersion":"`+version+`","content":"Hu."}`)
	parts := d.does(http.StatusOK, "PATCH", "/chats/c/messages/m", `{"parts":[{"type":"Text","text":"Ha."}]}`)
	if parts.field("spec", "content") != nil || len(parts.field("spec", "parts").([]any)) != 1 {
		t.Errorf("edited %s", parts.text)
	}
	earlier := d.does(http.StatusCreated, "POST", "/chats/c/messages",
		`{"name":"h","history":[{"role":"User","content":"Hi."},{"role":"Assistant","content":"Ho."}]}`)
	if len(earlier.field("spec", "history").([]any)) != 2 {
		t.Errorf("sent %s", earlier.text)
	}
	if got := d.does(http.StatusOK, "PATCH", "/chats/c/messages/h", `{"content":"Ha."}`); got.field("spec", "history") != nil {
		t.Errorf("edited %s", got.text)
	}
	if got := d.does(http.StatusOK, "POST", "/chats/c/messages/m/promote", ""); got.field("spec", "whenBusy") !=
		"Interrupt" {
		t.Errorf("promoted %s", got.text)
	}
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		body := map[string]string{"PATCH": `{"content":"x"}`}[method]
		d.refuses(http.StatusNotFound, "NotFound", "chat other has no message m", method, "/chats/other/messages/m", body)
	}
	d.does(http.StatusNoContent, "DELETE", "/chats/c/messages/m", "")
	d.refuses(http.StatusNotFound, "NotFound", `"m" not found`, "GET", "/chats/c/messages/m", "")
}

func TestPromotingMessageThatIsNotQueuedConflicts(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	d.create(&v1beta1.Chat{ObjectMeta: d.meta("c")})
	message := chattest.In(d.namespace, chattest.User("c", "m"))
	d.create(message)
	for _, state := range []v1beta1.MessageState{v1beta1.MessageCommitted, v1beta1.MessageSuperseded} {
		message.Status.State = state
		check.OK(t, cluster.Client.Status().Update(t.Context(), message))
		d.refuses(http.StatusConflict, "Conflict", "it is "+string(state), "POST", "/chats/c/messages/m/promote", "")
	}
	if got := d.does(http.StatusOK, "GET", "/chats/c/messages/m", ""); got.field("spec", "whenBusy") == "Interrupt" {
		t.Errorf("it was changed: %s", got.text)
	}
}

// The status of a message follows that of its chat some seconds later.
func TestHoldingMessageOfTheRunningTurnConflicts(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	chat, message := &v1beta1.Chat{ObjectMeta: d.meta("c")}, chattest.In(d.namespace, chattest.User("c", "m"))
	d.create(chat)
	d.create(message)
	message.Status.State = v1beta1.MessageQueued
	check.OK(t, cluster.Client.Status().Update(t.Context(), message))
	chat.Status.Turn = &v1beta1.TurnStatus{Message: "m", HistoryVersion: 1}
	check.OK(t, cluster.Client.Status().Update(t.Context(), chat))
	d.refuses(http.StatusConflict, "Conflict", "it is Committed", "PUT", "/chats/c/messages/m/hold", "")
}

func TestWaitingMessageIsHeldUntilItsEditEnds(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	d.create(&v1beta1.Chat{ObjectMeta: d.meta("c")})
	message := chattest.In(d.namespace, chattest.User("c", "m"))
	d.create(message)
	const at = "/chats/c/messages/m"
	hold := func() string {
		held := d.does(http.StatusOK, "PUT", at+"/hold", "")
		until, err := time.Parse(time.RFC3339, held.field("metadata", "annotations", v1beta1.AnnotationHoldUntil).(string))
		if left := time.Until(until); err != nil || left <= compose.HoldAgain || left > compose.HoldFor {
			t.Errorf("held for %s, %v: %s", left, err, held.text)
		}
		return held.field("metadata", "annotations", v1beta1.AnnotationHoldUntil).(string)
	}
	if got := d.does(http.StatusOK, "PATCH", at, `{"content":"Ho.","heldUntil":"`+hold()+`"}`); got.field("metadata", "annotations",
		v1beta1.AnnotationHoldUntil) != nil || got.field("metadata", "generation") != float64(2) {
		t.Errorf("edited %s", got.text)
	}
	hold()
	d.does(http.StatusNoContent, "DELETE", at+"/hold", "")
	if got := d.does(http.StatusOK, "GET", at, ""); got.field("metadata", "annotations",
		v1beta1.AnnotationHoldUntil) != nil || got.field("metadata", "generation") != float64(2) {
		t.Errorf("released %s", got.text)
	}
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(message), message))
	message.Status.State = v1beta1.MessageCommitted
	check.OK(t, cluster.Client.Status().Update(t.Context(), message))
	d.refuses(http.StatusConflict, "Conflict", "it is Committed", "PUT", at+"/hold", "")
	d.does(http.StatusNoContent, "DELETE", at+"/hold", "")
}

func TestEditorKeepsTheHoldOfAnother(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	d.create(&v1beta1.Chat{ObjectMeta: d.meta("c")})
	d.create(chattest.In(d.namespace, chattest.User("c", "m")))
	const at = "/chats/c/messages/m"
	hold := func() string {
		return d.does(http.StatusOK, "PUT", at+"/hold", "").field("metadata", "annotations",
			v1beta1.AnnotationHoldUntil).(string)
	}
	first, second := hold(), hold()
	d.does(http.StatusNoContent, "DELETE", at+"/hold?heldUntil="+first, "")
	for _, change := range []string{`{"content":"Ho."}`, `{"content":"Hi.","heldUntil":"` + first + `"}`} {
		if got := d.does(http.StatusOK, "PATCH", at, change).field("metadata", "annotations",
			v1beta1.AnnotationHoldUntil); got != second {
			t.Errorf("after %s it is held until %v, not %s", change, got, second)
		}
	}
	d.does(http.StatusNoContent, "DELETE", at+"/hold?heldUntil="+second, "")
	if got := d.does(http.StatusOK, "GET", at, "").field("metadata", "annotations",
		v1beta1.AnnotationHoldUntil); got != nil {
		t.Errorf("it is held until %v", got)
	}
}

func TestCallsAreDecidedAndAnswered(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	cluster.Bind(t, d.namespace, "anna", "ClusterRole", "parley-tool-approver")
	d.create(&v1beta1.Chat{ObjectMeta: d.meta("c")})
	approved := d.does(http.StatusCreated, "POST", "/chats/c/approvals",
		`{"toolCallID":"call_1","decision":"Deny","comment":"not now"}`)
	if approved.field("spec", "decision") != "Deny" || approved.field("spec", "chatRef", "name") != "c" ||
		approved.body["kind"] != "ToolApproval" {
		t.Errorf("decided %s", approved.text)
	}
	results := d.does(http.StatusCreated, "POST", "/chats/c/results", `{"results":[{"id":"call_2","output":"4711"}]}`)
	if results.field("spec", "role") != "Tool" || !strings.Contains(results.text, `"output":"4711"`) {
		t.Errorf("answered %s", results.text)
	}
}

func TestARequestTellsWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	chat := &v1beta1.Chat{ObjectMeta: d.meta("c")}
	d.create(chat)
	if got := d.does(http.StatusOK, "POST", "/chats/c/requests?wait=1", `{"kind":"Clear","token":"a"}`); got.text !=
		`{"kind":"Clear","token":"a"}`+"\n" {
		t.Errorf("nobody has acted, and it is %s", got.text)
	}
	acted := make(chan error, 1)
	go func() { // The manager is not here.
		acted <- func() error {
			err := wait.PollUntilContextTimeout(d.t.Context(), 10*time.Millisecond, time.Minute, true,
				func(ctx context.Context) (bool, error) {
					err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(chat), chat)
					return chat.Annotations[v1beta1.AnnotationInterrupt] == "b", err
				})
			if err != nil {
				return err
			}
			chat.Status.Requests = []v1beta1.HandledRequest{{Kind: v1beta1.RequestInterrupt, Token: "b",
				Outcome: v1beta1.RequestRefused, Message: "nothing to stop", Time: metav1.Now()}}
			return cluster.Client.Status().Update(d.t.Context(), chat)
		}()
	}()
	got := d.does(http.StatusOK, "POST", "/chats/c/requests", `{"kind":"Interrupt","token":"b"}`)
	check.OK(t, <-acted)
	again := d.does(http.StatusOK, "POST", "/chats/c/requests?wait=0", `{"kind":"Interrupt","token":"b"}`)
	for _, told := range []answer{got, again} {
		if told.body["outcome"] != "Refused" || told.body["message"] != "nothing to stop" {
			t.Errorf("it is %s", told.text)
		}
	}
	if named := d.does(http.StatusOK, "POST", "/chats/c/requests?wait=0", `{"kind":"Title"}`); named.body["token"] == "" {
		t.Errorf("it is %s", named.text)
	}
}

func TestOpenAPIDescriptionMatchesDocs(t *testing.T) {
	_, description := rest.New(rest.Options{})
	want, err := rest.Description(description)
	check.OK(t, err)
	got, err := os.ReadFile(filepath.Clean(testcluster.Path("docs", "reference", "gateway-openapi.json")))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/reference/gateway-openapi.json is not what the code says (%v): run make generate", err)
	}
}
