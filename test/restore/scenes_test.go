// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/modelserver"
)

// newModel serves a model that calls tools when a message begins so, leaves the first reply to "slow" unfinished, fails
// once at "fail", and says "Fine." to anything else.
func newModel(t *testing.T) (model *modelserver.Server, url string) {
	t.Helper()
	calls := func(text, tool string) modelserver.Rule {
		return modelserver.Rule{Match: modelserver.Match{LastUserText: text, ToolResults: new(0), ToolOffered: tool},
			Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Call(tool, `{}`)}}}
	}
	model, err := modelserver.New(modelserver.Script{Rules: []modelserver.Rule{
		calls("what time", "current_time"), calls("look at the screen", "screen"),
		{Match: modelserver.Match{LastUserText: "slow"}, Times: 1,
			Reply: modelserver.Reply{DelayBefore: modelserver.Duration(time.Hour)}},
		{Match: modelserver.Match{LastUserText: "fail"}, Times: 1, Reply: modelserver.Reply{
			Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: 400, Message: "no such thing"}}},
		{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Fine.")}}},
	}})
	check.OK(t, err)
	server := httptest.NewServer(model)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return model, server.URL + "/v1"
}

// create creates objects of the room as alice.
func (r *room) create(objects ...client.Object) {
	r.t.Helper()
	alice := r.client("alice")
	for _, o := range objects {
		if err := alice.Create(r.t.Context(), chattest.In(r.ns, o)); err != nil {
			r.t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

func (r *room) patch(o client.Object, patch string) {
	r.t.Helper()
	check.OK(r.t, r.client("alice").Patch(r.t.Context(), chattest.In(r.ns, o),
		client.RawPatch(types.MergePatchType, []byte(patch))))
}

// get reads a chat.
func (r *room) get(name string) *v1beta1.Chat {
	r.t.Helper()
	var chat v1beta1.Chat
	check.OK(r.t, r.Client.Get(r.t.Context(), client.ObjectKey{Namespace: r.ns, Name: name}, &chat))
	return &chat
}

// reasonOf is the reason of condition Ready, and whether that is of the newest spec.
func reasonOf(conditions []metav1.Condition, generation int64) string {
	ready := meta.FindStatusCondition(conditions, v1beta1.ConditionReady)
	if ready == nil || ready.ObservedGeneration != generation {
		return ""
	}
	return ready.Reason
}

// awaitChat waits until condition Ready of the chat has the reason.
func (r *room) awaitChat(name string, reason v1beta1.ConditionReason) {
	r.t.Helper()
	r.eventually("chat "+name+" says "+string(reason), func() bool {
		chat := r.get(name)
		return reasonOf(chat.Status.Conditions, chat.Generation) == string(reason)
	})
}

// awaitMessage waits until condition Ready of the message has the reason.
func (r *room) awaitMessage(name string, reason v1beta1.ConditionReason) {
	r.t.Helper()
	r.eventually("message "+name+" says "+string(reason), func() bool {
		var m v1beta1.ChatMessage
		err := r.Client.Get(r.t.Context(), client.ObjectKey{Namespace: r.ns, Name: name}, &m)
		check.OK(r.t, client.IgnoreNotFound(err))
		return reasonOf(m.Status.Conditions, m.Generation) == string(reason)
	})
}

// say creates a message and waits until it is answered.
func (r *room) say(chat, name, text string) {
	r.t.Helper()
	r.create(chattest.User(chat, name, chattest.Content(text)))
	r.awaitMessage(name, v1beta1.ReasonAnswered)
}

// approves lets a call of the chat run.
func (r *room) approves(chat string) {
	r.t.Helper()
	call := r.get(chat).Status.RequiresAction.ToolCalls[0]
	r.create(chattest.DecidesOf(chat, chat+"-approval", call, v1beta1.DecisionApprove))
}

func approval(c *v1beta1.Chat) {
	c.Spec.Tools = &v1beta1.ChatTools{}
	c.Spec.Tools.Approval = []v1beta1.ToolPattern{"current_time"}
	c.Spec.Limits = &v1beta1.ChatLimits{MaxQueue: new(int32(1))}
}

// atRest are the chats of newScene that take a further message at once.
var atRest = []string{"tools", "root", "root-sub", "approved", "compacted", "imported", "titled", "failed"}

// newScene runs chats of many kinds, until each stands as its name says.
func newScene(r *room, url string) {
	priced := func(s *v1beta1.ChatModelConfigSpec) { s.APIKey = nil; modeltest.Priced(s) }
	r.create(modeltest.Config("default", url, chattest.Default, priced),
		modeltest.Config("titled", url, priced, func(s *v1beta1.ChatModelConfigSpec) {
			s.Titles = &v1beta1.CaptionSettings{}
		}))
	named := func(config string) func(*v1beta1.Chat) {
		return func(c *v1beta1.Chat) { c.Spec.ModelConfigRef = &v1beta1.ModelConfigReference{Name: config} }
	}
	r.create(
		chattest.Chat("tools", chattest.Prompt("what time is it?")),
		chattest.Chat("root", chattest.Prompt("hello"), func(c *v1beta1.Chat) {
			c.Spec.Limits = &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: "EUR", Amount: "5"}}
		}),
		chattest.Chat("root-sub", chattest.Prompt("below"), chattest.ChildOf("root")),
		chattest.Chat("approved", chattest.Prompt("what time is it?"), approval),
		chattest.Chat("waits", chattest.Prompt("what time is it?"), approval),
		chattest.Chat("client", chattest.Prompt("look at the screen"), func(c *v1beta1.Chat) {
			c.Spec.Tools = &v1beta1.ChatTools{Client: []v1beta1.ClientTool{{Name: "screen"}}}
		}),
		chattest.Chat("compacted", chattest.Prompt("hello")),
		chattest.Chat("imported"),
		chattest.Chat("archived", chattest.Prompt("hello")),
		chattest.Chat("failed", chattest.Prompt("fail")),
		chattest.Chat("titled", chattest.Prompt("hello"), named("titled")),
		chattest.Chat("pending", chattest.Prompt("hello"), named("absent")),
	)
	r.talkTo()
	r.create(chattest.Chat("flight", chattest.Prompt("slow")))
	r.eventually("the reply of chat flight is under way", func() bool {
		return r.get("flight").Status.Generation != nil && len(r.running) > 0
	})
	r.awaitMessage("flight-prompt", v1beta1.ReasonAnswering)
}

// talkTo says what is said in the chats of newScene.
func (r *room) talkTo() {
	r.t.Helper()
	for _, chat := range []string{"tools", "root", "root-sub", "compacted", "archived", "titled"} {
		r.awaitMessage(chat+"-prompt", v1beta1.ReasonAnswered)
	}
	r.say("tools", "tools-1", "and now?")
	r.say("tools", "tools-2", "what else?")
	r.create(chattest.User("tools", "tools-note", func(m *v1beta1.ChatMessage) {
		m.Spec.Visibility = v1beta1.VisibleToUsers
	}))
	r.awaitMessage("tools-note", v1beta1.ReasonNoted)
	r.patch(chattest.User("tools", "tools-1"), `{"spec":{"content":"and tomorrow?"}}`)
	r.awaitMessage("tools-1", v1beta1.ReasonAnswered)
	r.awaitMessage("tools-2", v1beta1.ReasonSuperseded)
	r.awaitChat("approved", v1beta1.ReasonRequiresAction)
	r.approves("approved")
	r.awaitMessage("approved-prompt", v1beta1.ReasonAnswered)
	r.awaitChat("waits", v1beta1.ReasonRequiresAction)
	r.create(chattest.User("waits", "waits-1"))
	r.awaitMessage("waits-1", v1beta1.ReasonQueued)
	r.create(chattest.User("waits", "waits-2"))
	r.awaitMessage("waits-2", v1beta1.ReasonQueueFull)
	r.awaitChat("client", v1beta1.ReasonRequiresAction)
	r.patch(chattest.Chat("compacted"), `{"metadata":{"annotations":{"`+v1beta1.AnnotationCompact+`":"1"}}}`)
	r.eventually("chat compacted has a summary", func() bool { return r.get("compacted").Status.History.ContextStart > 0 })
	r.awaitChat("compacted", v1beta1.ReasonAnswered)
	r.create(chattest.User("imported", "imported-1", func(m *v1beta1.ChatMessage) {
		m.Spec.Content = ""
		m.Spec.History = []v1beta1.PriorMessage{{Role: v1beta1.RoleUser, Content: "before"},
			{Role: v1beta1.RoleAssistant, Content: "Indeed."}}
	}))
	r.awaitMessage("imported-1", v1beta1.ReasonAnswered)
	r.say("imported", "imported-2", "my password is "+password)
	r.redact("imported")
	r.say("imported", "imported-3", "go on")
	r.patch(chattest.Chat("archived"), `{"spec":{"archived":true}}`)
	r.awaitChat("archived", v1beta1.ReasonArchived)
	r.eventually("chat failed has failed", func() bool { return r.get("failed").Status.Phase == v1beta1.ChatError })
	r.awaitChat("pending", v1beta1.ConditionReason(v1beta1.ErrorModelConfigNotFound))
}

const password = "hunter2"

// redact removes the password from a chat as alice.
func (r *room) redact(chat string) {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "password")
	check.OK(r.t, os.WriteFile(file, []byte(password), 0o600))
	if out, code := r.chat("alice", "redact", chat, file, "-n", r.ns); code != 0 {
		r.t.Fatalf("redacting chat %s: %s", chat, out)
	}
}
