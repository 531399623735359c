// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/modelserver"
)

const (
	// longestThought is how long a person may think between an answer and the next question.
	longestThought = 7 * time.Second
	// impatience is how often in a hundred a person asks on before the answer, so that the question queues.
	impatience = 30
	// mostOpen is how many questions a person lets wait. It is well below limits.maxQueue, so that none is refused.
	mostOpen = 5
)

// talk lets all chats talk and chaos reign for as long as the soak shall last, and until each move of an upgrade was
// made. It returns when all have stopped.
func (w *world) talk(ctx context.Context, l *ledger, c *chaos) error {
	group, ctx := errgroup.WithContext(ctx)
	lasting, stop := context.WithCancel(ctx)
	defer stop()
	for i := range w.chats {
		p := &person{world: w, ledger: l, chat: chatName(i), number: i, random: rand.New(rand.NewPCG(w.seed, uint64(i)))}
		if len(w.images) > 0 {
			p.role = roleOf(i)
		}
		group.Go(func() error { return p.talk(ctx, lasting, i%2 == 0) })
	}
	group.Go(func() error {
		defer stop()
		c.reign(ctx)
		return nil
	})
	return group.Wait()
}

func chatName(i int) string { return fmt.Sprintf("c%02d", i) }

// person asks the questions of one chat.
type person struct {
	*world
	ledger *ledger
	chat   string
	number int
	role   role
	random *rand.Rand
	asked  int
}

// talk asks until lasting is done. What was begun is sent in any case, so that the ledger knows what exists.
func (p *person) talk(ctx, lasting context.Context, prompted bool) error {
	chat := &v1beta1.Chat{ObjectMeta: p.meta(p.chat), Spec: v1beta1.ChatSpec{ChatSettings: p.role.settings()}}
	if prompted {
		q := p.next(p.kind())
		q.name = p.chat + "-prompt"
		chat.Spec.Prompt = q.text()
		p.ledger.ask(q)
	}
	if err := p.create(ctx, chat); err != nil {
		return err
	}
	for pause(lasting, p.thought()) {
		if err := p.ask(ctx, p.kind()); err != nil {
			return err
		}
		p.ledger.wait(lasting, p.chat, p.waiting())
	}
	if p.role == commands {
		return p.ask(ctx, audit)
	}
	return nil
}

// ask sends the next question.
func (p *person) ask(ctx context.Context, k kind) error {
	q := p.next(k)
	q.name = fmt.Sprintf("%s-q%04d", p.chat, q.number)
	p.ledger.ask(q)
	return p.create(ctx, &v1beta1.ChatMessage{ObjectMeta: p.meta(q.name), Spec: v1beta1.ChatMessageSpec{
		ChatRef: v1beta1.ChatReference{Name: p.chat}, Content: q.text(),
	}})
}

// waiting is how many questions may be open when the person asks the next one. Commands follow each other closely.
func (p *person) waiting() int {
	switch {
	case p.role == commands:
		return 1
	case p.random.IntN(100) < impatience:
		return mostOpen - 1
	}
	return 0
}

// kind is that of the next question.
func (p *person) kind() kind {
	if p.asked == 0 && p.longest > 0 && p.number%20 == 0 {
		return longest
	}
	return cmp.Or(p.role.kind(p.asked), pick(p.random))
}

func (p *person) next(k kind) *question {
	q := &question{chat: p.chat, number: p.asked, kind: k, sent: time.Now()}
	p.asked++
	return q
}

// thought is short as often as it is long.
func (p *person) thought() time.Duration {
	if p.random.IntN(2) == 0 {
		return time.Duration(p.random.Int64N(int64(time.Second)))
	}
	return time.Duration(p.random.Int64N(int64(longestThought)))
}

// pause is false if ctx ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// create creates the object however often it takes. An object that is there was created by a try whose answer was lost.
func (w *world) create(ctx context.Context, o client.Object) error {
	return until(ctx, 2*time.Minute, func(ctx context.Context) error {
		fresh := o.DeepCopyObject().(client.Object)
		err := w.client.Create(ctx, fresh)
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("creating %s: %w", o.GetName(), err)
		}
		return nil
	})
}

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
	// longest is a reply whose call of the model takes as long as --longest says.
	longest kind = "longest"
	// command is a call of execute that takes commandTime, and then the reply.
	command kind = "command"
	// background starts the command in the background, and waits for its end with a second call.
	background kind = "background"
	// audit is a call that lists the commands that have run in the workspace.
	audit kind = "audit"
	// agent is a call that starts a sub-chat with a long question, a call that waits for its answer, and the reply.
	agent kind = "agent"
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
	switch k {
	case tool, command, audit:
		return 3
	case background, agent:
		return 5
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
func script(longestCall time.Duration) modelserver.Script {
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
	last := reply(longest, 20*time.Millisecond)
	last.Reply.DelayBefore = modelserver.Duration(longestCall)
	rules := slices.Concat(commandRules(), agentRules())
	rules = append(rules, last, call, reply(slow, 80*time.Millisecond), reply(long, 80*time.Millisecond))
	for _, k := range []kind{quick, tool, command, background, audit, agent} {
		rules = append(rules, reply(k, 20*time.Millisecond))
	}
	return modelserver.Script{Rules: rules}
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
	// content is the text; empty: it follows from the other fields.
	content string
	// began and ended are when the command of the answer did; zero: it has none.
	began, ended time.Time
}

// text is the content, different for each question.
func (q *question) text() string {
	return cmp.Or(q.content, fmt.Sprintf("%s question %s-%d", q.kind, q.chat, q.number))
}
