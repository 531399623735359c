// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/controllers"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/modelserver"
)

const (
	preamble = "You work for Example Inc."
	careful  = "You are a careful programmer."
	bold     = "You are a bold programmer."
)

// coder is a default class whose chats have a workspace and a system prompt, and whose commands people approve.
func (w *world) coder(systemPrompt string) *v1beta1.ChatClass {
	return &v1beta1.ChatClass{ObjectMeta: w.meta("coder"), Spec: v1beta1.ChatClassSpec{
		Default: true, Preamble: preamble,
		Defaults: v1beta1.ChatSettings{SystemPrompt: systemPrompt, Workspace: &v1beta1.WorkspaceSource{
			PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "shell"}}},
		Restrictions: &v1beta1.ChatRestrictions{
			Fields: []v1beta1.ChatField{v1beta1.FieldWorkspace, v1beta1.FieldDebug},
			Tools:  &v1beta1.ToolPolicy{Deny: []v1beta1.ToolPattern{"attach_file"}, Approval: []v1beta1.ToolPattern{"execute"}},
		},
	}}
}

// inForce waits until the operator goes by what the class says.
func (w *world) inForce(class *v1beta1.ChatClass) {
	w.t.Helper()
	w.eventually("class "+class.Name+" is in force", func() bool {
		return c.Get(w.t.Context(), client.ObjectKeyFromObject(class), class) == nil &&
			class.Status.ObservedGeneration == class.Generation &&
			meta.IsStatusConditionTrue(class.Status.Conditions, v1beta1.ConditionReady)
	})
}

// lookedAt changes the title of a chat, and waits until the operator has seen that.
func (w *world) lookedAt(name string) *v1beta1.Chat {
	w.t.Helper()
	chat := w.chat(name)
	w.patch(chat, `{"spec":{"title":"The build"}}`)
	w.eventually("the operator has looked at chat "+name, func() bool {
		chat = w.chat(name)
		return chat.Status.ObservedGeneration == chat.Generation
	})
	return chat
}

// approveOnly lets the one call be run that the chat waits for.
func (w *world) approveOnly(name string) {
	w.t.Helper()
	chat := w.chat(name)
	calls := chat.Status.RequiresAction.ToolCalls
	if len(calls) != 1 || calls[0].Kind != v1beta1.RequiresApproval {
		w.t.Fatalf("chat %s waits for %+v", name, calls)
	}
	w.approve(chat)
}

// told checks that a request to the model, counted from 1, begins with the preamble and this system prompt, and offers
// commands but no attachments.
func (w *world) told(request int, systemPrompt string) {
	w.t.Helper()
	var body struct {
		Messages []struct{ Role, Content string }
		Tools    []struct{ Function struct{ Name string } }
	}
	check.OK(w.t, json.Unmarshal(w.requests()[request-1].Body, &body))
	if first := body.Messages[0]; first.Role != "system" ||
		!strings.HasPrefix(first.Content, preamble+"\n\n"+systemPrompt) {
		w.t.Errorf("request %d begins with %+v", request, first)
	}
	offered := map[string]bool{}
	for _, tool := range body.Tools {
		offered[tool.Function.Name] = true
	}
	if !offered["execute"] || offered["attach_file"] {
		w.t.Errorf("request %d offers %v", request, offered)
	}
}

// asPerson is a client of whoever chats in this world.
func (w *world) asPerson() client.Client {
	w.t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	check.OK(w.t, err)
	person, err := client.New(cfg, client.Options{Scheme: controllers.Scheme()})
	check.OK(w.t, err)
	return person
}

func TestChatWithoutSettingsFollowsDefaultClassChanges(t *testing.T) {
	localnode.Needed(t)
	w := newWorld(t, works(
		callOf("execute", map[string]any{"command": "echo for $WHO | tee -a log"}),
		callOf("execute", map[string]any{"command": "cat log"}),
	))
	w.template("shell")
	class := w.coder(careful)
	w.create(class)
	w.inForce(class)
	w.newChat("c", "Fix the build.")
	w.phase("c", v1beta1.ChatRequiresAction)
	w.told(1, careful)

	w.patch(class, `{"spec":{"defaults":{"systemPrompt":%q},
		"restrictions":{"tools":{"approval":null},"limits":{"maxSteps":2}}}}`, bold)
	w.inForce(class)
	killTheManager(w, &step{})
	if st := w.lookedAt("c").Status; st.Phase != v1beta1.ChatRequiresAction || len(w.results("c")) > 0 {
		t.Errorf("the call that waits for approval does not wait any more: %+v", st)
	}
	w.approveOnly("c")
	chat := w.ready("c", 5) // The prompt, and twice a call and its result.
	ready := meta.FindStatusCondition(chat.Status.Conditions, v1beta1.ConditionReady)
	if v1beta1.ReasonOf(ready) != v1beta1.ReasonMaxStepsReached || chat.Status.ChatClass.Generation != class.Generation {
		t.Errorf("the chat says %s, and goes by %+v", ready.Reason, chat.Status.ChatClass)
	}
	w.told(2, bold)
	check.Equal(t, "calls of the model", 2, len(w.requests()))
	for _, result := range w.results("c") {
		if result.IsError || !strings.Contains(result.Output, `"for world\n"`) {
			t.Errorf("the result is %+v", result)
		}
	}
	w.nothingLeft("c")
}

func TestChatCannotSetFieldsRestrictedByClass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{})
	class := w.coder(careful)
	w.create(class)
	w.inForce(class)
	person := w.asPerson()
	const refused = "ChatClass coder does not let its chats set spec.debug: leave that out, or name another class in " +
		"spec.chatClassName"
	w.eventually("the API server refuses it, too", func() bool {
		err := person.Create(t.Context(), &v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{
			Debug: &v1beta1.DebugSettings{Enabled: true}}}, client.DryRunAll)
		return apierrors.IsForbidden(err) && strings.HasSuffix(err.Error(), refused)
	})
	chat := &v1beta1.Chat{ObjectMeta: w.meta("c")}
	check.OK(t, person.Create(t.Context(), chat))
	err := person.Patch(t.Context(), chat,
		client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"debug":{"enabled":true}}}`)))
	if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), refused) {
		t.Errorf("the change is answered with %v", err)
	}
}

func TestChatWithDeletedClassWaitsUntilItReturns(t *testing.T) {
	t.Parallel()
	localnode.Needed(t)
	script := works(callOf("execute", map[string]any{"command": "echo for $WHO | tee -a log"}))
	slow := modelserver.Rule{Match: modelserver.Match{ToolResults: new(1)}, Times: 1,
		Reply: words(2000, 20*time.Millisecond)}
	script.Rules = append([]modelserver.Rule{slow}, script.Rules...)
	w := newWorld(t, script)
	w.template("shell")
	class := w.coder(careful)
	w.create(class)
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("c"),
		Spec: v1beta1.ChatSpec{ChatClassName: "coder", Prompt: "Fix the build."}})
	w.phase("c", v1beta1.ChatRequiresAction)
	check.OK(t, c.Delete(t.Context(), class))
	w.approveOnly("c")
	var ready *metav1.Condition
	w.eventually("the chat waits for its class", func() bool {
		ready = meta.FindStatusCondition(w.chat("c").Status.Conditions, v1beta1.ConditionReady)
		return string(v1beta1.ReasonOf(ready)) == string(v1beta1.ErrorChatClassNotFound)
	})
	if !strings.Contains(ready.Message, "ChatClass coder, which spec.chatClassName names, does not exist") ||
		len(w.results("c")) > 0 {
		t.Errorf("the chat says %q, after %d results", ready.Message, len(w.results("c")))
	}

	w.create(w.coder(bold))
	w.eventually("the model is streaming", func() bool { return len(w.requests()) == 2 })
	kill(t, w.ns, w.chat("c").Status.Generation.Pod, "generator")
	w.ready("c", 4)
	check.Equal(t, "the reply", "Done.", text(&w.history("c")[3]))
	for request := 2; request <= 3; request++ { // The second of them was made by a generator that has just started.
		w.told(request, bold)
	}
	w.nothingLeft("c")
}

// TestIdleFamilyExpiresTogetherWithWorkspace also loses the manager that knew when.
func TestIdleFamilyExpiresTogetherWithWorkspace(t *testing.T) {
	localnode.Needed(t)
	w := newWorld(t, works(callOf("execute", map[string]any{"command": "echo hello"})))
	w.template("shell")
	class := w.coder(careful)
	class.Spec.Restrictions.Tools.Approval = nil
	class.Spec.Defaults.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(3600))}
	w.create(class)
	w.inForce(class)
	w.newChat("c", "Fix the build.")
	w.ready("c", 4)
	below := &v1beta1.Chat{ObjectMeta: w.meta("below")}
	below.Spec.ParentRef, below.Spec.Prompt = &v1beta1.ChatReference{Name: "c"}, "Look."
	w.create(below)
	w.ready("below", 4)
	rested := w.chat("below").Status.IdleSince.Time
	w.eventually("the chat says when it goes", func() bool {
		at := w.chat("c").Status.ExpiresAt
		return at != nil && at.Sub(rested) == time.Hour
	})
	const said = "# ChatClass coder\nretention:\n  deleteAfterSeconds: 3600\n"
	check.Contains(t, w.kubectlChat("settings", "c"), said)

	age := int(time.Since(rested)/time.Second) + 20
	w.patch(class, `{"spec":{"defaults":{"retention":{"deleteAfterSeconds":%d}}}}`, age)
	w.eventually("the class counts", func() bool {
		return w.chat("c").Status.ExpiresAt.Sub(rested) == time.Duration(age)*time.Second
	})
	killTheManager(w, &step{})
	w.eventually("chats, messages, workspace and pod are gone", func() bool {
		return w.none(&v1beta1.ChatList{}) && w.none(&v1beta1.ChatMessageList{}) && w.none(&v1beta1.WorkspaceList{}) &&
			w.housing() == nil
	})
	if early := time.Until(rested.Add(time.Duration(age) * time.Second)); early > time.Second {
		t.Errorf("they went %v early", early)
	}
	w.eventually("an Event says so", func() bool {
		var events eventsv1.EventList
		check.OK(t, c.List(t.Context(), &events, client.InNamespace(w.ns)))
		for i := range events.Items {
			if e := &events.Items[i]; e.Reason == string(v1beta1.EventExpired) && e.Regarding.Name == "c" {
				return true
			}
		}
		return false
	})
}

// none reports whether the namespace has no objects of that kind.
func (w *world) none(list client.ObjectList) bool {
	w.t.Helper()
	check.OK(w.t, c.List(w.t.Context(), list, client.InNamespace(w.ns)))
	return meta.LenList(list) == 0
}
