// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// goingOn are the scenarios in which a chat takes its course.
var goingOn = []scenario{
	{name: "a prompt is answered", everyWrite: true, does: []step{
		prompts("hello"), answers(chattest.Says("Hi.")),
	}},
	{name: "a chat at rest expires", ends: nothingLeft, does: []step{
		prompts("hello", goesAtRest), awaits(beingAnswered), fromHere(), answers(chattest.Says("Hi.")),
	}},
	{name: "a chat at rest is archived before it expires", ends: nothingLeft, does: []step{
		prompts("hello", goesAtRest, isArchived), awaits(beingAnswered), fromHere(), answers(chattest.Says("Hi.")),
		hasArchive(2),
	}},
	{name: "a tool call makes a turn of three steps", does: []step{
		prompts("what time is it?"), awaits(beingAnswered), fromHere(),
		answers(chattest.Calls("call_1")), answers(chattest.Results("call_1")), answers(chattest.Says("It is noon.")),
	}},
	{name: "queued messages are answered in order", does: []step{
		prompts("hello"), awaits(beingAnswered), fromHere(),
		says("m1"), awaits(queue("m1")), says("m2"), awaits(queue("m1", "m2")),
		answers(chattest.Says("One.")), answers(chattest.Says("Two.")), answers(chattest.Says("Three.")),
	}},
	{name: "a new message goes on after a failure", does: []step{
		prompts("hello"), awaits(beingAnswered), fromHere(),
		answers(chattest.Fails(v1beta1.ErrorAuthenticationFailed)), awaits(phase(v1beta1.ChatError)),
		says("m1"), answers(chattest.Says("Now it works.")),
	}},
	{name: "a failure ends the turn and is told", does: []step{
		prompts("hello"), awaits(beingAnswered), fromHere(), answers(chattest.Fails(v1beta1.ErrorContextTooLong)),
	}},
	{name: "a queued message is deleted", does: []step{
		prompts("hello"), awaits(beingAnswered), says("m1"), says("m2"), awaits(queue("m1", "m2")), fromHere(),
		deletes("m1"), awaits(queue("m2")), answers(chattest.Says("One.")), answers(chattest.Says("Two.")),
	}},
	{name: "one message too many is rejected", does: []step{
		prompts("hello", func(c *v1beta1.Chat) { c.Spec.Limits = &v1beta1.ChatLimits{MaxQueue: new(int32(1))} }),
		awaits(beingAnswered), says("m1"), awaits(queue("m1")), fromHere(),
		says("m2"), awaits(reason("m2", v1beta1.ReasonQueueFull)), answers(chattest.Says("One.")),
		answers(chattest.Says("Two.")),
	}},
	{name: "an attempt that is lost is made again", does: []step{
		prompts("hello"), awaits(beingAnswered), fromHere(), answers(chattest.Lost()), answers(chattest.Says("Hi.")),
	}},
	{name: "an attempt whose pod is gone is made again", does: []step{
		prompts("hello"), awaits(beingAnswered), runsPods(), awaits(chatSays(v1beta1.ReasonGenerating)), fromHere(),
		losesPods(), awaits(attemptNumber(2)), answers(chattest.Says("Hi.")),
	}},
	{name: "an attempt whose pod is gone at once is made again", does: []step{
		prompts("hello"), awaits(anAttempt()), fromHere(), losesPods(), awaits(attemptNumber(2)),
		answers(chattest.Says("Hi.")),
	}},
	{name: "the limit of steps ends a turn", does: []step{
		prompts("hello", func(c *v1beta1.Chat) { c.Spec.Limits = &v1beta1.ChatLimits{MaxSteps: new(int32(1))} }),
		awaits(beingAnswered), fromHere(), answers(chattest.Calls("call_1")), answers(chattest.Results("call_1")),
	}},
	{name: "what became of a turn is taken and counted once", bare: true, does: []step{
		configures(func(s *v1beta1.ChatModelConfigSpec) { s.TurnSummaries = &v1beta1.CaptionSettings{} }),
		prompts("hello"), answers(chattest.Says("Hi.")), awaits(reason("c-prompt", v1beta1.ReasonAnswered)), fromHere(),
		saysOfTurn("Greeted"), awaits(summary("Greeted")), says("m1"), answers(chattest.Says("Yes?")),
	}},
	{name: "an edit of the chat while the model answers costs nothing", does: []step{
		prompts("hello"), awaits(beingAnswered), fromHere(), changesChat(func(c *v1beta1.Chat) {
			c.Labels = map[string]string{"team": "a"}
			c.Spec.SystemPrompt = "Be brief."
		}), awaits(observed()), answers(chattest.Says("Hi.")), // Else one write could be both.
	}},
	{name: "a message may come before its chat", does: []step{
		says("m1"), awaits(state("m1", v1beta1.MessagePending)), prompts(""), answers(chattest.Says("Hi.")),
	}},
	{name: "a chat waits for a model", bare: true, does: []step{
		prompts("hello"), awaits(state("c-prompt", v1beta1.MessagePending)), configures(), answers(chattest.Says("Hi.")),
	}},
	{name: "a deleted chat leaves nothing behind", ends: nothingLeft, does: []step{
		prompts("hello"), answers(chattest.Says("Hi.")), says("m1"), answers(chattest.Says("Again.")),
		awaits(reason("m1", v1beta1.ReasonAnswered)),
		fromHere(), deletesChat(),
	}},
	{name: "a new chat by the name of a deleted one begins afresh", does: []step{
		prompts("hello"), answers(chattest.Says("Hi.")), awaits(reason("c-prompt", v1beta1.ReasonAnswered)), fromHere(),
		deletesChat(), awaits(gone()), prompts("anew"), answers(chattest.Says("Who are you?")),
	}},
	{name: "a new chat that comes at once begins afresh", does: []step{
		prompts("hello"), answers(chattest.Says("Hi.")), awaits(reason("c-prompt", v1beta1.ReasonAnswered)), fromHere(),
		deletesChat(), prompts("anew"), answers(chattest.Says("Who are you?")),
	}},
}
