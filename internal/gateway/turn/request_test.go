// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn_test

import (
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func said(s string) turn.Item {
	return turn.Item{Kind: turn.User, Parts: []v1beta1.MessagePart{text(s)}}
}

func called(call string) turn.Item { return turn.Item{Kind: turn.ToolCall, Call: call} }

func returned(call, output string) turn.Item {
	return turn.Item{Kind: turn.ToolResult, Call: call, Text: output}
}

func TestNewsAreWhatFollowsTheLastReply(t *testing.T) {
	system, replied := turn.Item{Kind: turn.System, Text: "Be brief."}, turn.Item{Kind: turn.Reply, Text: "Hello."}
	for name, c := range map[string]struct {
		items []turn.Item
		want  turn.News
	}{
		"a first message": {[]turn.Item{system, said("Hi.")},
			turn.News{Instructions: "Be brief.", Parts: []v1beta1.MessagePart{text("Hi.")}}},
		"a conversation that is resent": {[]turn.Item{system, said("Hi."), replied, said("And?"), said("Go on.")},
			turn.News{Instructions: "Be brief.", Resent: true, Parts: []v1beta1.MessagePart{text("And?"), text("Go on.")}}},
		"results, as JSON": {[]turn.Item{said("Hi."), called("c1_chat-x"), called("c2_chat-x"),
			returned("c1_chat-x", "rain"), returned("c2_chat-x", `{"sun": 1}`)},
			turn.News{Resent: true, Chat: "chat-x", Results: []v1beta1.ToolResult{{ID: "c1", Output: `"rain"`},
				{ID: "c2", Output: `{"sun": 1}`}}}},
		"a result after each call": {[]turn.Item{said("Hi."), called("c1_chat-x"), returned("c1_chat-x", "1"),
			called("c2_chat-x"), returned("c2_chat-x", "2")},
			turn.News{Resent: true, Chat: "chat-x", Earlier: map[string]v1beta1.ToolResult{"c1": {ID: "c1", Output: "1"}},
				Results: []v1beta1.ToolResult{{ID: "c2", Output: "2"}}}},
		"a result that comes twice": {[]turn.Item{called("c1"), returned("c1", "1"), called("c2"), returned("c1", "3"),
			returned("c2", "2")}, turn.News{Resent: true, Earlier: map[string]v1beta1.ToolResult{},
			Results: []v1beta1.ToolResult{{ID: "c1", Output: "3"}, {ID: "c2", Output: "2"}}}},
		"an earlier call leads to the chat": {[]turn.Item{said("Hi."), called("c1_chat-x"),
			returned("c1_chat-x", "rain"), replied, said("And?")},
			turn.News{Resent: true, Chat: "chat-x", Parts: []v1beta1.MessagePart{text("And?")},
				Earlier: map[string]v1beta1.ToolResult{"c1": {ID: "c1", Output: `"rain"`}}}},
		"nothing behind the reply": {[]turn.Item{said("Hi."), replied}, turn.News{Resent: true}},
	} {
		t.Run(name, func(t *testing.T) {
			r := turn.Request{Items: c.items}
			check.Equal(t, "news", c.want, r.News())
		})
	}
}

func TestResultsThatFollowTheirCallsAreSentTogether(t *testing.T) {
	r := turn.Request{Items: []turn.Item{called("c1"), returned("c1", "1"), called("c3"), returned("c3", "old"),
		called("c4"), returned("c4", "old"), called("c2"), returned("c2", "2"), {Kind: turn.Reply}, called("c4"),
		called("c3"), returned("c3", "3")}}
	for pending, want := range map[string][]v1beta1.ToolResult{
		"c3":    {{ID: "c3", Output: "3"}},
		"c2 c3": {{ID: "c2", Output: "2"}, {ID: "c3", Output: "3"}},
		"c3 c4": {{ID: "c3", Output: "3"}}, // c4 has no result yet.
	} {
		chat := chattest.Chat("c")
		chat.Status.RequiresAction = &v1beta1.RequiresActionStatus{}
		for id := range strings.FieldsSeq(pending) {
			chat.Status.RequiresAction.ToolCalls = append(chat.Status.RequiresAction.ToolCalls,
				v1beta1.PendingToolCall{ID: id, Kind: v1beta1.RequiresClient})
		}
		n := r.News()
		check.Equal(t, pending, want, n.ResultsFor(chat))
	}
}

func TestACallNamesItsChat(t *testing.T) {
	id, chat, ok := turn.SplitCall(turn.CallID("call_a_b-1", "team.chat-1"))
	if !ok || id != "call_a_b-1" || chat != "team.chat-1" {
		t.Errorf("got %q %q %v", id, chat, ok)
	}
	for _, none := range []string{"", "call_", "call_UPPER", "_chat", "call_../x", "call_a/b", "call_" + strings.Repeat("a", 201),
		strings.Repeat("a", 129) + "_chat"} {
		if id, chat, ok := turn.SplitCall(none); ok {
			t.Errorf("%.20q is call %q of %q", none, id, chat)
		}
	}
}

func TestTheSameRequestHasTheSameNames(t *testing.T) {
	resent := func() *turn.Request {
		return &turn.Request{Namespace: "ns", Chat: "chat-x",
			Items: []turn.Item{said("Hi."), {Kind: turn.Reply}, said("And?")}}
	}
	longer := resent()
	longer.Items = append(longer.Items, turn.Item{Kind: turn.Reply}, said("And?"))
	keyed := func(caller string) string {
		return (&turn.Request{Namespace: "ns", Key: "k", Items: []turn.Item{said("Hi.")}}).ChatName(caller)
	}
	first, again := resent().MessageName("anna", "chat-x"), resent().MessageName("anna", "chat-x")
	if first != again || first == "" {
		t.Error("a conversation that is resent has another name each time")
	}
	if resent().MessageName("anna", "chat-x") == longer.MessageName("anna", "chat-x") {
		t.Error("the same words later in the conversation are the same message")
	}
	if first, again := keyed("anna"), keyed("anna"); first != again || first == "" {
		t.Error("a key does not name the chat")
	}
	if keyed("anna") == keyed("bob") {
		t.Error("the key of another caller names the same chat")
	}
	check.Equal(t, "a message that may be said twice is named", "", (&turn.Request{Chat: "c",
		Items: []turn.Item{said("Hi.")}}).MessageName("anna", "c"))
	for _, name := range []string{keyed("anna"), resent().MessageName("anna", "chat-x"),
		(&turn.Request{Thread: "../../x"}).ChatName("anna")} {
		if !turn.IsMessageName(name) {
			t.Errorf("%s is no name", name)
		}
	}
}

func TestTextNextToOtherResultsIsAnotherMessage(t *testing.T) {
	text := func(output string, before ...turn.Item) (hash, name string) {
		r := (&turn.Request{Chat: "c", Items: append(before, returned("c1_c", output), said("Go on."))}).WithoutResults()
		return r.Hash("anna"), r.MessageName("anna", "c")
	}
	hash, name := text("rain")
	again, same := text("rain")
	other, another := text("sun")
	if hash != again || name != same || name == "" {
		t.Errorf("the same request is %s %s and %s %s", hash, name, again, same)
	}
	if hash == other || name == another {
		t.Error("the same text next to other results is the same message")
	}
	resent, _ := text("rain", said("Hi."), called("c1_c"))
	plain := (&turn.Request{Chat: "c", Items: []turn.Item{said("Hi."), called("c1_c"), said("Go on.")}}).Hash("anna")
	check.Equal(t, "the hash of a conversation that is resent", plain, resent)
}

// Security (a client of OpenAI's protocols): cannot change instructions of a chat that someone else has created.
func TestARequestChangesOnlyWhatIsItsOwn(t *testing.T) {
	tool := v1beta1.ClientTool{Name: "weather"}
	ours, others := chattest.Chat("c"), chattest.Chat("c")
	ours.Labels = map[string]string{turn.LabelProtocol: turn.ProtocolOpenAI}
	ours.Spec.SystemPrompt, others.Spec.SystemPrompt = "Be brief.", "Be long."
	others.Spec.Tools = &v1beta1.ChatTools{Client: []v1beta1.ClientTool{tool}}
	instructed := turn.Request{Items: []turn.Item{{Kind: turn.System, Text: "Be kind."}, said("Hi.")}}
	if instructed.Change(ours) == nil {
		t.Error("new instructions do not reach the chat that the client has created")
	}
	if change := instructed.Change(others); change != nil {
		t.Errorf("instructions of a client replace those of somebody else's chat: %v", change)
	}
	if change := (&turn.Request{Tools: []v1beta1.ClientTool{}}).Change(others); change != nil {
		t.Errorf("a client without tools takes those of somebody else's chat: %v", change)
	}
	if change := (&turn.Request{Tools: []v1beta1.ClientTool{tool}}).Change(others); change != nil {
		t.Errorf("tools that the chat has are written again: %v", change)
	}
	if (&turn.Request{Tools: []v1beta1.ClientTool{{Name: "news"}}}).Change(others) == nil {
		t.Error("tools of the request do not reach the chat")
	}
}
