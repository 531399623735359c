// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/test/kit/chattest"
)

// steering are the scenarios in which people change their minds.
var steering = []scenario{
	{name: "an interrupted turn keeps what was said", does: []step{
		prompts("hello"), awaits(beingAnswered), fromHere(),
		annotates(v1beta1.AnnotationInterrupt, "1"), awaits(phase(v1beta1.ChatInterrupting)),
		answers(chattest.Says("Half a"), chattest.Interrupted()),
	}},
	{name: "a message that cuts in is answered next", does: []step{
		prompts("hello"), awaits(beingAnswered), says("m1"), awaits(queue("m1")), fromHere(),
		says("m2", chattest.CutsIn), awaits(phase(v1beta1.ChatInterrupting)), answers(chattest.Interrupted()),
		answers(chattest.Says("The second.")), answers(chattest.Says("The first.")),
	}},
	{name: "a queued message that is told to cut in is answered next", does: []step{
		prompts("hello"), awaits(beingAnswered), says("m1"), says("m2"), awaits(queue("m1", "m2")), fromHere(),
		changes("m2", chattest.CutsIn), awaits(phase(v1beta1.ChatInterrupting)),
		answers(chattest.Says("Half a"), chattest.Interrupted()),
		answers(chattest.Says("The second.")), answers(chattest.Says("The first.")),
	}},
	{name: "an edited message is answered again", does: []step{
		prompts("hello"), answers(chattest.Says("Hi.")), says("m1"), answers(chattest.Says("Again.")),
		awaits(reason("m1", v1beta1.ReasonAnswered)),
		fromHere(), edits("c-prompt", "good evening"), answers(chattest.Says("To you, too.")),
	}},
	{name: "an edit of what is being answered fences the work off", does: []step{
		prompts("hello"), awaits(beingAnswered), says("m1"), awaits(reason("m1", v1beta1.ReasonQueued)), fromHere(),
		edits("c-prompt", "good evening"), awaits(version(2)), answers(chattest.Says("To you, too.")),
	}},
	{name: "a queued message is edited", does: []step{
		prompts("hello"), awaits(beingAnswered), says("m1"), awaits(queue("m1")), fromHere(),
		edits("m1", "this is something else"), answers(chattest.Says("One.")), answers(chattest.Says("Two.")),
	}},
	{name: "a deleted reply is made again", does: []step{
		prompts("hello"), answers(chattest.Says("Hi.")), awaits(reason("c-prompt", v1beta1.ReasonAnswered)), fromHere(),
		deletesHead(), answers(chattest.Says("Good day.")),
	}},
	{name: "a deleted message takes what follows along", does: []step{
		prompts("hello"), answers(chattest.Says("One.")), says("m1"), answers(chattest.Says("Two.")), says("m2"),
		answers(chattest.Says("Three.")),
		awaits(reason("m2", v1beta1.ReasonAnswered)), fromHere(), deletes("m1"),
		awaits(reason("m2", v1beta1.ReasonSuperseded)),
	}},
	{name: "a suspended chat holds its work", does: []step{
		prompts("hello"), awaits(beingAnswered), fromHere(),
		suspends(true), answers(chattest.Calls("call_1")), awaits(chatSays(v1beta1.ReasonSuspended)),
		suspends(false), answers(chattest.Results("call_1")), answers(chattest.Says("It is noon.")),
	}},
	{name: "a client's results go on with the turn", does: []step{
		prompts("hello"), awaits(beingAnswered), fromHere(),
		answers(chattest.CallsRequiring(v1beta1.RequiresClient, "call_1")), awaits(phase(v1beta1.ChatRequiresAction)),
		brings("results", "call_1"), answers(chattest.Says("It is done.")), says("m1"), answers(chattest.Says("Yes?")),
	}},
	{name: "a client's results end the turn, and do so still when what followed is deleted", does: []step{
		prompts("hello", func(c *v1beta1.Chat) { c.Spec.Tools = &v1beta1.ChatTools{StopAfter: []string{"current_time"}} }),
		answers(chattest.CallsRequiring(v1beta1.RequiresClient, "call_1")), awaits(phase(v1beta1.ChatRequiresAction)),
		fromHere(),
		brings("results", "call_1"), awaits(reason("c-prompt", v1beta1.ReasonStoppedAfterTool)),
		says("m1"), answers(chattest.Says("Yes?")), awaits(reason("m1", v1beta1.ReasonAnswered)),
		deletes("m1"), awaits(chatSays(v1beta1.ReasonStoppedAfterTool)),
	}},
	{name: "an approved call runs and a denied one does not", does: []step{
		prompts("hello"), awaits(beingAnswered), fromHere(),
		answers(chattest.CallsRequiring(v1beta1.RequiresApproval, "call_1", "call_2")),
		awaits(phase(v1beta1.ChatRequiresAction)),
		decides("yes", "call_1", v1beta1.DecisionApprove), decides("no", "call_2", v1beta1.DecisionDeny),
		answers(chattest.Results("call_1", "call_2")), answers(chattest.Says("It is noon.")),
	}},
	{name: "a call that asks people is made again with their answer", does: []step{
		prompts("hello"), awaits(beingAnswered), fromHere(),
		answers(chattest.Calls("call_1", "call_2")), answers(chattest.Results("call_2"), chattest.Asks("call_1")),
		awaits(phase(v1beta1.ChatRequiresAction)), creates(chattest.DecidesOf(chatName, "yes",
			approval.OfQuestion(chattest.Question("call_1")), v1beta1.DecisionApprove)),
		answers(chattest.Results("call_1")), answers(chattest.Says("As you like.")),
	}},
	{name: "a plan is carried out once it is approved, and edited away", does: []step{
		prompts("hello", func(c *v1beta1.Chat) { c.Spec.Mode = v1beta1.ModePlan }), awaits(beingAnswered), fromHere(),
		answers(chattest.CallsRequiring(v1beta1.RequiresApproval, "call_1")), awaits(phase(v1beta1.ChatRequiresAction)),
		decides("no", "call_1", v1beta1.DecisionDeny), answers(chattest.Results("call_1")),
		answers(chattest.CallsRequiring(v1beta1.RequiresApproval, "call_2")), awaits(phase(v1beta1.ChatRequiresAction)),
		decides("yes", "call_2", v1beta1.DecisionApprove), answers(chattest.Results("call_2"), chattest.PlanApproved()),
		awaits(planApproved(true)), edits("c-prompt", "something else"), awaits(planApproved(false)),
		answers(chattest.Says("Fine.")),
	}},
	{name: "an archived chat takes messages up once it is back", does: []step{
		prompts("hello"), answers(chattest.Says("Hi.")), awaits(reason("c-prompt", v1beta1.ReasonAnswered)), fromHere(),
		archives(true), awaits(chatSays(v1beta1.ReasonArchived)), says("m1"),
		awaits(reason("m1", v1beta1.ReasonChatArchived)),
		archives(false), answers(chattest.Says("Here I am.")),
	}},
	{name: "what cuts in comes behind what was said to an archived chat before", does: []step{
		prompts("hello"), answers(chattest.Says("Hi.")), awaits(reason("c-prompt", v1beta1.ReasonAnswered)),
		archives(true), awaits(chatSays(v1beta1.ReasonArchived)), says("m1"),
		awaits(reason("m1", v1beta1.ReasonChatArchived)), says("m2", chattest.CutsIn),
		awaits(reason("m2", v1beta1.ReasonChatArchived)), seen("m2"), fromHere(),
		archives(false), answers(chattest.Says("Here I am.")),
	}},
	{name: "a step that failed for the moment is tried again", does: []step{
		prompts("hello"), awaits(beingAnswered), fromHere(),
		answers(chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow)), awaits(chatSays(v1beta1.ReasonRetrying)),
		answers(chattest.Calls("call_1")),
		answers(chattest.Results("call_1")), answers(chattest.Says("At last.")),
	}},
	{name: "a summary takes the place of what was said", does: []step{
		prompts("hello"), answers(chattest.Says("Hi.")), awaits(reason("c-prompt", v1beta1.ReasonAnswered)), says("m1"),
		answers(chattest.Says("Yes?")),
		awaits(reason("m1", v1beta1.ReasonAnswered)), fromHere(),
		annotates(v1beta1.AnnotationCompact, "1"), answers(chattest.Compacts("They greeted.")), awaits(contextBegins(4)),
		says("m2"), answers(chattest.Says("Go on.")),
	}},
	{name: "the context of a workspace is asked for again", does: []step{
		prompts("hello", inWorkspace), awaits(beingAnswered), fromHere(),
		annotates(v1beta1.AnnotationRefreshContext, "1"), awaits(contextAskedFor), answers(chattest.Says("Hi.")),
	}},
	{name: "a new context hides the old one", does: []step{
		prompts("hello"), answers(chattest.Says("Hi.")), awaits(reason("c-prompt", v1beta1.ReasonAnswered)), fromHere(),
		annotates(v1beta1.AnnotationClear, "1"), awaits(contextBegins(2)), says("m1"),
		answers(chattest.Says("Who are you?")),
	}},
}
