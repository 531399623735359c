// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1beta1"
)

func newChat() *Chat { return New(Limits{MaxQueue: 20, MaxSteps: 1200}) }

func client(id string) Call { return Call{ID: id, RequiresAction: v1beta1.RequiresClient} }

func person(id string) Call { return Call{ID: id, RequiresAction: v1beta1.RequiresApproval} }

func own(id string) Call { return Call{ID: id} }

func TestTheModelTellsTheseStories(t *testing.T) {
	for name, story := range map[string]struct {
		tell func(c *Chat)
		want View
	}{
		"a message is answered": {
			func(c *Chat) { c.Send("ask", false); c.Finish("reply") },
			View{
				Phase: "Waiting", Ready: "True Answered", History: []string{"User ask", "Assistant reply"}, Turn: "ask Answered",
				Messages: map[string]string{"ask": "Committed True Answered"},
			},
		},
		"tools run before the model is asked again": {
			func(c *Chat) { c.Send("ask", false); c.Finish("reply", own("1")) },
			View{
				Phase: "Running", Ready: "Unknown ExecutingTools", History: []string{"User ask", "Assistant reply"}, Turn: "ask",
				Attempt: "1 ExecuteTools", Messages: map[string]string{"ask": "Committed Unknown Answering"},
			},
		},
		"a client and a person are asked at once, and the decided call is run after the results are in": {
			func(c *Chat) {
				c.Send("ask", false)
				c.Finish("reply", client("1"), person("2"))
				c.Bring("results", Result{ID: "1"})
				c.Decide("no", "2", v1beta1.DecisionDeny)
			},
			View{
				Phase: "Running", Ready: "Unknown ExecutingTools", History: []string{"User ask", "Assistant reply", "Tool results"},
				Turn:      "ask",
				Attempt:   "1 ExecuteTools",
				Messages:  map[string]string{"ask": "Committed Unknown Answering", "results": "Committed True ResultsAccepted"},
				Approvals: map[string]string{"no": "True Applied"},
			},
		},
		"a tool ends the turn once people have answered the other calls, and the queue goes on": {
			func(c *Chat) {
				c.Send("a", false)
				c.Finish("1", own("x"), client("y"))
				c.Send("b", false)
				c.Stop("2")
				c.Bring("results", Result{ID: "y"})
			},
			View{
				Phase: "Running", Ready: "Unknown Generating", History: []string{"User a", "Assistant 1", "Tool 2", "Tool results",
					"User b"}, Turn: "b",
				Attempt: "1 GenerateAssistant",
				Messages: map[string]string{
					"a": "Committed True StoppedAfterTool", "b": "Committed Unknown Answering",
					"results": "Committed True ResultsAccepted",
				},
			},
		},
		"a client's result ends the turn, and what followed is deleted": {
			func(c *Chat) {
				c.Limits.StopsAfterClient = true
				c.Send("a", false)
				c.Finish("1", client("x"), client("y"))
				c.Bring("results", Result{ID: "x", Failed: true}, Result{ID: "y"})
				c.Send("b", false)
				c.Delete("b")
			},
			View{
				Phase: "Waiting", Ready: "True StoppedAfterTool", History: []string{"User a", "Assistant 1", "Tool results"},
				Turn:     "a StoppedAfterTool",
				Messages: map[string]string{"a": "Committed True StoppedAfterTool", "results": "Committed True ResultsAccepted"},
			},
		},
		"a client's error does not end the turn": {
			func(c *Chat) {
				c.Limits.StopsAfterClient = true
				c.Send("a", false)
				c.Finish("1", client("x"))
				c.Bring("results", Result{ID: "x", Failed: true})
			},
			View{
				Phase: "Running", Ready: "Unknown Generating", History: []string{"User a", "Assistant 1", "Tool results"},
				Turn:     "a",
				Attempt:  "1 GenerateAssistant",
				Messages: map[string]string{"a": "Committed Unknown Answering", "results": "Committed True ResultsAccepted"},
			},
		},
		"a reached budget holds the turn until it is raised": {
			func(c *Chat) {
				c.SetBudget(1)
				c.Send("a", false)
				c.Finish("1", own("x"))
				c.Finish("2")
				if got := c.See(); got.Ready != "False BudgetReached" || got.Phase != "Running" || got.Attempt != "" {
					c.Error = "NotHeld"
				}
				c.SetBudget(2)
			},
			View{
				Phase: "Running", Ready: "Unknown Generating", History: []string{"User a", "Assistant 1", "Tool 2"}, Turn: "a",
				Attempt: "1 GenerateAssistant", Messages: map[string]string{"a": "Committed Unknown Answering"},
			},
		},
		"a chat that is archived does not wait for money": {
			func(c *Chat) {
				c.Spawn("s", newChat())
				c.Sub.Send("b", false)
				c.Sub.Finish("1")
				c.SetBudget(1)
				c.Send("a", false)
				c.Archive()
			},
			View{
				Phase: "Error", Ready: "True Archived", History: []string{"User a"}, Turn: "a Failed", Error: "BudgetReached",
				Messages: map[string]string{"a": "Committed False BudgetReached"},
			},
		},
		"after a failure the message that waited longest goes first": {
			func(c *Chat) {
				c.Send("a", false)
				c.Send("b", false)
				c.Fail(v1beta1.ErrorRateLimited)
				c.Send("c", false)
			},
			View{
				Phase: "Running", Ready: "Unknown Generating", History: []string{"User a", "User b"}, Turn: "b",
				Queue:   []string{"c"},
				Attempt: "1 GenerateAssistant",
				Messages: map[string]string{
					"a": "Committed False RateLimited", "b": "Committed Unknown Answering", "c": "Queued Unknown Queued",
				},
			},
		},
		"a message that cuts in lets the turn hand over what it has": {
			func(c *Chat) {
				c.Send("a", false)
				c.Send("b", true)
				c.HandOver("part")
			},
			View{
				Phase: "Running", Ready: "Unknown Generating", History: []string{"User a", "Assistant part", "User b"}, Turn: "b",
				Attempt:  "1 GenerateAssistant",
				Messages: map[string]string{"a": "Committed False Interrupted", "b": "Committed Unknown Answering"},
			},
		},
		"an edit begins again from there, without what was queued": {
			func(c *Chat) {
				c.Send("a", false)
				c.Finish("1")
				c.Send("b", false)
				c.Send("c", false)
				c.Edit("a")
			},
			View{
				Phase: "Running", Ready: "Unknown Generating", History: []string{"User a"}, Turn: "a",
				Attempt: "1 GenerateAssistant",
				Messages: map[string]string{
					"a": "Committed Unknown Answering", "b": "Superseded False Superseded", "c": "Superseded False Superseded",
				},
			},
		},
		"a deleted result is asked for again": {
			func(c *Chat) {
				c.Send("a", false)
				c.Finish("1", client("x"))
				c.Bring("results", Result{ID: "x"})
				c.Finish("2")
				c.Delete("results")
			},
			View{
				Phase: "RequiresAction", Ready: "Unknown RequiresAction", History: []string{"User a", "Assistant 1"}, Turn: "a",
				Asked: []string{"x Client"}, Messages: map[string]string{"a": "Committed Unknown Answering"},
			},
		},
		"a suspended chat finishes the step under way and begins no other": {
			func(c *Chat) {
				c.Send("a", false)
				c.Suspend()
				c.Finish("1", own("x"))
			},
			View{
				Phase: "Running", Ready: "Unknown Suspended", History: []string{"User a", "Assistant 1"}, Turn: "a",
				Messages: map[string]string{"a": "Committed Unknown Answering"},
			},
		},
		"a chat is put away when its turn and its queue are done, and takes up nothing else until it is back": {
			func(c *Chat) {
				c.Send("a", false)
				c.Send("b", false)
				c.Archive()
				c.Send("c", true)
				c.Finish("1")
				c.Fail(v1beta1.ErrorRateLimited)
				c.Edit("a")
			},
			View{
				Phase: "Error", Ready: "True Archived", History: []string{"User a", "Assistant 1", "User b"}, Turn: "b Failed",
				Error: "RateLimited",
				Messages: map[string]string{
					"a": "Committed Unknown ChatArchived", "b": "Committed False RateLimited",
					"c": "Pending Unknown ChatArchived",
				},
			},
		},
		"a chat waits for its sub-chat, and is put away with it": {
			func(c *Chat) {
				c.Send("a", false)
				c.Spawn("sub", newChat())
				c.Sub.Send("b", false)
				c.Finish("1", Call{ID: "x", WaitsFor: "sub"})
				c.Archive()
				c.Interrupt("stop")
			},
			View{
				Phase: "Waiting", Ready: "Unknown Archiving", History: []string{"User a", "Assistant 1"}, Turn: "a Interrupted",
				Requests: map[string]string{"Interrupt": "stop Done"},
				Messages: map[string]string{"a": "Committed False Interrupted"},
			},
		},
		"a quota that is lowered cuts nobody off, and holds the next step": {
			func(c *Chat) {
				c.Meet("other", newChat())
				c.Send("a", false)
				c.Peer("other").Send("b", false)
				c.SetQuota("q", Counts{1, Unlimited})
				c.Finish("1", own("x"))
			},
			View{
				Phase: "Running", Ready: "Unknown WaitingForCapacity", History: []string{"User a", "Assistant 1"}, Turn: "a",
				Messages: map[string]string{"a": "Committed Unknown Answering"},
			},
		},
		"clearing hides what was said, and is refused when there is nothing to hide": {
			func(c *Chat) {
				c.Send("a", false)
				c.Fail(v1beta1.ErrorContextTooLong)
				c.Clear("one")
				c.Clear("two")
			},
			View{
				Phase: "Waiting", Ready: "True Answered", History: []string{"User a"}, ContextStart: 1, Turn: "a Failed",
				Requests: map[string]string{"Clear": "two Refused"},
				Messages: map[string]string{"a": "Committed False ContextTooLong"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChat()
			story.tell(c)
			got := c.See()
			for _, v := range []*View{&got, &story.want} { // A map that is empty says the same as none.
				for _, m := range []*map[string]string{&v.Requests, &v.Messages, &v.Approvals} {
					if len(*m) == 0 {
						*m = nil
					}
				}
				if len(v.Queue) == 0 {
					v.Queue = nil
				}
			}
			if diff := cmp.Diff(story.want, got); diff != "" {
				t.Errorf("the model says something else (+):\n%s", diff)
			}
		})
	}
}

func TestRejectedMessageAsksAnewOnceChanged(t *testing.T) {
	c := New(Limits{MaxQueue: 1, MaxSteps: 5})
	c.Send("a", false)
	c.Send("b", false)
	c.Send("c", false)
	if m := c.Person("c"); m.State != v1beta1.MessageRejected || m.Refusal != v1beta1.ReasonQueueFull {
		t.Fatalf("the third message is %s because of %s", m.State, m.Refusal)
	}
	c.Finish("1")
	c.Edit("c")
	if m := c.Person("c"); m.State != v1beta1.MessageQueued {
		t.Errorf("the message that asks again is %s", m.State)
	}
}

func TestResultsThatDoNotFitAreRejected(t *testing.T) {
	for name, results := range map[string][]Result{
		"missing":    {{ID: "1"}},
		"duplicate":  {{ID: "1"}, {ID: "1"}},
		"unexpected": {{ID: "1"}, {ID: "2"}, {ID: "3"}},
		"malformed":  {{ID: "1"}, {ID: "2", Malformed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChat()
			c.Send("a", false)
			c.Finish("reply", client("1"), client("2"))
			c.Bring("results", results...)
			if m := c.Person("results"); m.State != v1beta1.MessageRejected || c.Phase != v1beta1.ChatRequiresAction {
				t.Errorf("the results are %s, the chat is %s", m.State, c.Phase)
			}
		})
	}
}

func TestSuspendedChatReplacesALostAttemptOnceResumed(t *testing.T) {
	c := newChat()
	c.Send("a", false)
	c.Suspend()
	c.Lose()
	if got := c.See(); got.Attempt != "" || got.Ready != "Unknown Suspended" {
		t.Errorf("attempt %q, Ready %q", got.Attempt, got.Ready)
	}
	c.Resume()
	if got := c.See(); got.Attempt != "2 GenerateAssistant" {
		t.Errorf("attempt %q after it was resumed", got.Attempt)
	}
}

func TestFreeSlotGoesToLongestWaitingChat(t *testing.T) {
	c := newChat()
	c.SetQuota("q", Counts{1, Unlimited})
	first, second, third := newChat(), newChat(), newChat()
	for name, peer := range map[string]*Chat{"first": first, "second": second, "third": third} {
		c.Meet(name, peer)
	}
	for _, chat := range []*Chat{c, first, second, third} {
		chat.Send("hello", false)
	}
	first.Suspend() // It leaves the queue, and is behind the others when it comes back.
	c.HandOut()
	first.Resume()
	c.Finish("reply")
	c.HandOut()
	for chat, want := range map[*Chat]string{
		c: "True Answered", second: "Unknown Generating", third: "Unknown WaitingForCapacity",
		first: "Unknown WaitingForCapacity",
	} {
		if got := chat.See().Ready; got != want {
			t.Errorf("%s says %s, want %s", chat.Name, got, want)
		}
	}
	second.FailForNow() // Until it tries again others may.
	c.HandOut()
	if third.Attempt == nil || second.Attempt != nil {
		t.Error("the place of an attempt that failed was kept")
	}
	c.DeleteQuota("q")
	c.HandOut()
	if first.Attempt == nil || second.Attempt == nil || second.Attempt.Number != 2 {
		t.Error("without a quota somebody waits")
	}
}
