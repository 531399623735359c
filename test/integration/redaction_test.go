// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history/redact"
	cli "parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realpod"
	"parley.dev/parley/test/modelserver"
)

const pasted = `hunter"2-2026`

// removal removes the pasted text from chats of a namespace, and lists what it changes.
func removal(t *testing.T, ns string) (r *cli.Redaction, changed map[string][]string) {
	t.Helper()
	text, err := redact.New(pasted)
	check.OK(t, err)
	untyped, err := dynamic.NewForConfig(cluster.Config)
	check.OK(t, err)
	changed = map[string][]string{}
	return &cli.Redaction{Namespace: ns, Client: untyped, Text: text,
		Report: func(object string, fields []string) { changed[object] = fields }}, changed
}

func TestRedactedTextIsGoneAndNothingRepeats(t *testing.T) {
	t.Parallel()
	models, err := modelserver.New(modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "password"}, Reply: modelserver.Reply{Steps: []modelserver.Step{
			modelserver.Think("They said " + pasted), modelserver.Say("I have now read " + pasted + ".")}}},
		{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Fine.")}}},
	}})
	check.OK(t, err)
	server := httptest.NewServer(models)
	t.Cleanup(server.Close)
	ns := bareNamespace(t)
	create(t, modelConfig(ns, "default", func(s *v1beta1.ChatModelConfigSpec) {
		s.Default, s.BaseURL = true, server.URL+"/v1"
	}))
	create(t, newChat(ns, "c", "hello"))
	realpod.Run(t, cluster.Config, ns, assigned(t, ns, "c", 1, 1).Status.Generation.Pod)
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	create(t, chattest.In(ns, chattest.User("c", "pastes", chattest.Content("The password is "+pasted))))
	waitForMessage(t, ns, "pastes", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	create(t, say(ns, "c", "third"))
	waitForMessage(t, ns, "third", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	before, calls := chatIn(t, ns, "c"), len(models.Requests())
	create(t, &v1beta1.ChatDebugStep{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "recording"},
		DebugRecording: v1beta1.DebugRecording{ChatRef: v1beta1.ChatReference{Name: "c"}, ChatUID: string(before.UID),
			Action: v1beta1.ActionGenerateAssistant, Call: 1, Pod: "p", Attempt: 1, State: v1beta1.DebugCompleted,
			StartedAt: metav1.NowMicro(), Model: v1beta1.ModelIdentity{Name: pasted}}})

	r, changed := removal(t, ns)
	left, err := r.Left(t.Context(), "c")
	check.OK(t, err)
	if len(left) == 0 {
		t.Error("nothing has the text before it is removed")
	}
	check.OK(t, r.Chat(t.Context(), "c"))
	left, err = r.Left(t.Context(), "c")
	check.OK(t, err)
	check.Equal(t, "what is left", []string(nil), left)
	if fields, found := changed["chatdebugsteps/recording"]; !found || fields != nil {
		t.Errorf("the recording is not deleted: %v", changed)
	}
	reply := before.Name + "-3-1"
	for _, object := range []string{"chatmessages/pastes", "chatmessages/" + reply} {
		if len(changed[object]) == 0 {
			t.Errorf("%s is not changed: %v", object, changed)
		}
	}
	check.Equal(t, "the reply", "I have now read [redacted].", textOf(messageIn(t, ns, reply)))

	// Then the chat continues, and the model is told what is left.
	create(t, say(ns, "c", "fourth"))
	waitForMessage(t, ns, "fourth", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	requests := models.Requests()
	check.Equal(t, "calls", calls+1, len(requests))
	told := string(requests[len(requests)-1].Body)
	if strings.Contains(told, "hunter") || !strings.Contains(told, "The password is [redacted]") {
		t.Errorf("the model was told %s", told)
	}
	check.Equal(t, "the length of the history", before.Status.History.Length+2, chatIn(t, ns, "c").Status.History.Length)
	waitForMessage(t, ns, "pastes", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	for _, list := range []client.ObjectList{&v1beta1.ChatList{}, &v1beta1.ChatMessageList{},
		&v1beta1.ChatDebugStepList{}} {
		check.OK(t, cluster.Client.List(t.Context(), list, client.InNamespace(ns)))
		if text, err := json.Marshal(list); err != nil || strings.Contains(string(text), "hunter") {
			t.Errorf("%v: %s", err, text)
		}
	}

	// A person may still edit the message.
	edit(t, ns, "pastes", "There is no password.")
	eventually(t, "the edit is answered", func() bool { return chatIn(t, ns, "c").Status.History.Length == 4 })
}

func textOf(m *v1beta1.ChatMessage) (text string) {
	for i := range m.Spec.Parts {
		if p := &m.Spec.Parts[i]; p.Type == v1beta1.PartText && p.Text != nil {
			text += *p.Text
		}
	}
	return text
}

func TestSupersededMessageWithTheTextIsDeleted(t *testing.T) {
	ns := parallel(t)
	answers(t, started(t, ns, "c", "My token is "+pasted), chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	create(t, chattest.In(ns, chattest.User("c", "again", chattest.Content("It is "+pasted))))
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	edit(t, ns, "c-prompt", "The token is "+pasted)
	answers(t, assigned(t, ns, "c", 5, 1), chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	eventually(t, "the later message is superseded", func() bool {
		return messageIn(t, ns, "again").Status.State == v1beta1.MessageSuperseded
	})

	r, changed := removal(t, ns)
	check.OK(t, r.Chat(t.Context(), "c"))
	fields, found := changed["chatmessages/again"]
	check.Equal(t, "the superseded message is deleted", true, found && fields == nil)
	chat := chatIn(t, ns, "c")
	check.Equal(t, "the prompt and its message", []string{"My token is [redacted]", "The token is [redacted]"},
		[]string{chat.Spec.Prompt, messageIn(t, ns, "c-prompt").Spec.Content})
	left, err := r.Left(t.Context(), "c")
	check.OK(t, err)
	check.Equal(t, "what is left", []string(nil), left)
}

func TestResultsOfClientsAreRedactedRepeatedly(t *testing.T) {
	ns := parallel(t)
	create(t, ticketChat(ns))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.CallsOf(ticket("call_1")))
	waitForPhase(t, ns, "c", v1beta1.ChatRequiresAction)
	create(t, resultsOf(ns, "results", "call_1", strconv.Quote(pasted+" other-secret")))
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Says("Fine."))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-3-1", 4)
	waitForMessage(t, ns, "results", metav1.ConditionTrue, v1beta1.ReasonResultsAccepted)
	for _, word := range []string{pasted, "other-secret"} {
		r, _ := removal(t, ns)
		var err error
		r.Text, err = redact.New(word)
		check.OK(t, err)
		before := messageIn(t, ns, "results").Annotations[v1beta1.AnnotationRedacted]
		check.OK(t, r.Chat(t.Context(), "c"))
		if after := messageIn(t, ns, "results").Annotations[v1beta1.AnnotationRedacted]; after == before {
			t.Errorf("the mark stays %q, and the policy would refuse the change", after)
		}
	}
	check.Equal(t, "the result", `"[redacted] [redacted]"`, messageIn(t, ns, "results").Spec.Parts[0].ToolResult.Output)
}
