// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"parley.dev/parley/test/modelserver"
)

// kind is how a question is answered. It is the first word of the question, by which the model knows it.
type kind string

const (
	// quick is a reply of one step, in a quarter of a second.
	quick kind = "quick"
	// tool is a call of current_time and then the reply.
	tool kind = "tool"
	// slow is a reply that is streamed for three seconds.
	slow kind = "slow"
	// long is a reply that is streamed for ten seconds, so that kills meet it.
	long kind = "long"
)

// pick is a kind at random, as often as people might ask such things.
func pick(random *rand.Rand) kind {
	switch n := random.IntN(100); {
	case n < 45:
		return quick
	case n < 70:
		return tool
	case n < 90:
		return slow
	default:
		return long
	}
}

// steps is how many generated messages answer a question of the kind.
func (k kind) steps() int {
	if k == tool {
		return 3
	}
	return 1
}

// filler is what a reply of the kind says before it comes to the point.
func (k kind) filler() string {
	switch k {
	case slow:
		return strings.Repeat("well ", 36)
	case long:
		return strings.Repeat("so ", 120)
	default:
		return ""
	}
}

// answer is the whole text of the last step that answers the question. It names the question.
func (k kind) answer(question string) string { return k.filler() + "answer to " + question }

// script makes the model answer each question by its own answer.
func script() modelserver.Script {
	reply := func(k kind, between time.Duration) modelserver.Rule {
		return modelserver.Rule{Name: string(k), Match: modelserver.Match{LastUserText: string(k) + " question"},
			Reply: modelserver.Reply{
				Steps:       []modelserver.Step{{Text: &modelserver.Text{Value: k.answer("{{.LastUserText}}"), PieceWords: 1}}},
				DelayBefore: modelserver.Duration(100 * time.Millisecond), DelayBetween: modelserver.Duration(between),
			}}
	}
	call := modelserver.Rule{
		Name:  "call",
		Match: modelserver.Match{LastUserText: string(tool) + " question", ToolResults: new(0)},
		Reply: modelserver.Reply{
			Steps: []modelserver.Step{modelserver.Say("Let me look."),
				modelserver.Call("current_time", `{"timezone":"UTC"}`)},
			DelayBefore: modelserver.Duration(100 * time.Millisecond),
		},
	}
	return modelserver.Script{Rules: []modelserver.Rule{
		call, reply(tool, 20*time.Millisecond), reply(quick, 20*time.Millisecond),
		reply(slow, 80*time.Millisecond), reply(long, 80*time.Millisecond),
	}}
}

// question is a message of the soak's people.
type question struct {
	chat string
	// number within the chat, from 0: messages are answered in this order.
	number int
	kind   kind
	// name of the ChatMessage.
	name string
	sent time.Time
}

// text is the content, different for each question.
func (q *question) text() string { return fmt.Sprintf("%s question %s-%d", q.kind, q.chat, q.number) }
