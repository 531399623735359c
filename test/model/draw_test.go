// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/model/reference"
)

// drawer draws a sequence. What it draws depends on the seed alone, because the model is all that it looks at.
type drawer struct {
	*rand.Rand
	chat *reference.Chat
	// n counts the operations, for names that sort in the order of their creation.
	n int
	// interrupted counts the operations since the attempt was told to stop.
	interrupted int
	// token is the number of the newest one, so that it can be given again.
	token int
	// crowded is true for a sequence with quotas and other chats.
	crowded bool
}

// draw draws a sequence of 5 to most operations, besides the first.
func draw(seed int64, most int) []operation {
	d := &drawer{Rand: rand.New(rand.NewPCG(uint64(seed), 0))} // A test must be repeatable.
	d.crowded = d.one(2)
	first := d.first()
	if d.one(12) {
		first.args = append(first.args, "modelless")
	}
	if d.one(8) {
		first.args = append(first.args, d.pick([]string{"classed", "modelled"}))
	}
	d.chat = beginning(first)
	ops := []operation{first}
	for n := 5 + d.IntN(max(most-4, 1)); len(ops) <= n || d.chat.Interrupting(); {
		d.n++
		o := d.nextOfFamily()
		if !possible(d.chat, o) {
			continue
		}
		o.hasty = d.mayHurry(o)
		means(d.chat, o)
		ops = append(ops, o)
		if d.interrupted++; d.chat.Phase != v1beta1.ChatInterrupting {
			d.interrupted = 0
		}
	}
	ops[len(ops)-1].hasty = false
	if d.chat.IsReferenceMissing() {
		ops = append(ops, op("ref"))
	}
	if !d.chat.HasModel() {
		ops = append(ops, op("model"))
	}
	for _, quota := range d.chat.Quotas() { // Nobody waits for ever.
		ops = append(ops, op("unquota", quota))
	}
	return ops
}

func (d *drawer) one(in int) bool { return d.IntN(in) == 0 }

// first draws the chat.
func (d *drawer) first() operation {
	o := op("chat")
	if !d.one(3) {
		o.args = append(o.args, "prompt")
	}
	if d.one(3) {
		o.args = append(o.args, fmt.Sprintf("maxQueue=%d", d.IntN(4)))
	}
	if d.one(4) {
		o.args = append(o.args, fmt.Sprintf("maxSteps=%d", 1+d.IntN(3)))
	}
	if d.one(12) {
		o.args = append(o.args, "impatient")
	}
	if d.one(12) {
		o.args = append(o.args, "suspended")
	}
	if d.one(2) {
		o.args = append(o.args, "stops")
	}
	return o
}

// nextOfFamily draws an operation on the chat, on its sub-chat or on a peer.
func (d *drawer) nextOfFamily() operation {
	if !d.chat.HasModel() && d.one(4) {
		return op("model")
	}
	if d.one(80) {
		return op("unmodel")
	}
	if c := d.chat; c.IsReferenceMissing() && d.one(4) {
		return op("ref")
	} else if c.Refers() != "" && d.one(12) {
		return op("unref")
	}
	others := d.others()
	for _, o := range others {
		if o.chat.Phase == v1beta1.ChatInterrupting {
			return d.with(o, (*drawer).generator)
		}
	}
	if len(others) > 0 && d.one(3) || len(others) > 1 && d.one(3) {
		return d.with(others[d.IntN(len(others))], (*drawer).next)
	}
	if d.crowded && (len(d.chat.Peers) < 2 && d.one(2) || len(d.chat.Quotas()) == 0 && d.one(3) || d.one(6)) {
		return d.crowd()
	}
	return d.next()
}

// other is a chat besides the first, and the words that are before what is done to it.
type other struct {
	chat  *reference.Chat
	words []string
}

func (d *drawer) others() (all []other) {
	if d.chat.Sub != nil {
		all = append(all, other{d.chat.Sub, []string{"sub"}})
	}
	for _, peer := range d.chat.Peers {
		all = append(all, other{peer, []string{"peer", peer.Name}})
	}
	return all
}

// with draws an operation on another chat.
func (d *drawer) with(o other, draw func(*drawer) operation) operation {
	of := *d
	of.chat, of.interrupted = o.chat, 0
	does := draw(&of)
	d.token = of.token
	return operation{verb: o.words[0], args: slices.Concat(o.words[1:], []string{does.verb}, does.args)}
}

// crowd draws what happens in the namespace around the chat.
func (d *drawer) crowd() operation {
	if len(d.chat.Peers) < 2 || len(d.chat.Peers) < 3 && d.one(6) {
		return op("meet", append([]any{d.name("p")}, asAny(d.first().args)...)...)
	}
	if d.one(5) {
		return op("unquota", d.pick(d.chat.Quotas()))
	}
	chats, subChats := d.pick([]string{"0", "0", "1", "1", "1", "1", "2", unset}), d.pick([]string{"0", "1", unset, unset})
	return op("quota", d.pick([]string{"a", "a", "b"}), chats, subChats)
}

func asAny(words []string) (all []any) {
	for _, word := range words {
		all = append(all, word)
	}
	return all
}

// spawn draws a sub-chat.
func (d *drawer) spawn() operation {
	if d.one(3) {
		return op("spawn", d.name("s"))
	}
	return op("spawn", d.name("s"), "prompt")
}

// next draws an operation. It prefers those that bring the chat on, and does not leave it interrupted for long.
func (d *drawer) next() operation {
	if d.chat.Attempt != nil && (d.interrupted > 3 || d.IntN(10) < 4) {
		return d.generator()
	}
	if len(d.chat.Asked) > 0 && d.one(2) {
		return d.action()
	}
	if d.chat.Suspended && d.one(4) {
		return op("resume")
	}
	if d.chat.ToArchive && d.one(5) {
		return op("unarchive")
	}
	if !d.crowded && d.one(16) || d.chat.Limits.Budget > 0 && d.one(8) {
		return d.budget()
	}
	return weighted(d.Rand, []choice{
		{24, func() operation { return op("send", d.name("m")) }},
		{8, func() operation { return op("cutin", d.name("m")) }},
		{9, func() operation { return op("edit", d.user()) }},
		{9, func() operation { return op("delete", d.message()) }},
		{4, func() operation { return op("delete", d.queued()) }},
		{6, func() operation { return op("promote", d.queued()) }},
		{2, func() operation { return op("promote", d.user()) }},
		{12, func() operation { return op("hold", d.queued()) }},
		{8, func() operation { return op("release", d.pick(reference.Holds{Chat: d.chat}.Names())) }},
		{7, func() operation { return op("interrupt", d.newToken()) }},
		{4, func() operation { return op("clear", d.newToken()) }},
		{5, func() operation { return op("compact", d.newToken()) }},
		{2, func() operation { return op("refresh", d.newToken()) }},
		{3, func() operation { return op("suspend") }},
		{3, func() operation { return op("archive") }},
		{5, d.spawn},
		{2, func() operation { return op("despawn") }},
		{2, func() operation { return op("maxqueue", d.IntN(4)) }},
		{2, func() operation { return op("anew", asAny(d.first().args)...) }},
		{2, func() operation { return op("label", d.name("l")) }},
		{2, func() operation { return op("reapply") }},
		{4, func() operation { return op("late", d.name("r")) }},
		{6, func() operation { return op("settle") }},
		{3, d.action},
	})
}

type choice struct {
	weight int
	draw   func() operation
}

func weighted(r *rand.Rand, choices []choice) operation {
	sum := 0
	for _, c := range choices {
		sum += c.weight
	}
	n := r.IntN(sum)
	for _, c := range choices {
		if n -= c.weight; n < 0 {
			return c.draw()
		}
	}
	return operation{}
}

func (d *drawer) name(prefix string) string { return fmt.Sprintf("%s%03d", prefix, d.n) }

// newToken is one that was not given before, most of the time.
func (d *drawer) newToken() string {
	if !d.one(8) {
		d.token++
	}
	return fmt.Sprintf("token%d", d.token)
}

// generator draws an end of the attempt.
func (d *drawer) generator() operation {
	name := d.name("r")
	return weighted(d.Rand, []choice{
		{30, func() operation { return op("finish", name) }},
		{26, func() operation { return op("finish", d.calls(name)...) }},
		{8, func() operation {
			return op("fail", d.pick([]string{"RateLimited", "Overloaded", "ProviderError", "ContextTooLong"}))
		}},
		{4, func() operation { return op("lose") }},
		{3, func() operation { return op("flunk") }},
		{8, func() operation { return op("partial", name) }},
		{5, func() operation { return op("partial", d.calls(name)...) }},
		{5, func() operation { return op("nothing") }},
		{40, func() operation { return op("stop", name) }},
	})
}

func (d *drawer) calls(name string) []any {
	args, kinds := []any{name}, []string{"own", "client", "approval"}
	if d.chat.Sub != nil {
		kinds = append(kinds, "wait", "wait")
	}
	for range 1 + d.IntN(3) {
		args = append(args, d.pick(kinds))
	}
	return args
}

// budget draws a budget that is reached, or will soon be, or none.
func (d *drawer) budget() operation {
	if d.one(5) {
		return op("budget", unset)
	}
	return op("budget", max(1, d.chat.Spent()+d.IntN(4)))
}

// action draws what people and clients do about calls, right or wrong.
func (d *drawer) action() operation {
	var client, approval []string
	for _, call := range d.chat.Asked {
		if call.RequiresAction == v1beta1.RequiresClient {
			client = append(client, call.ID)
		} else {
			approval = append(approval, call.ID)
		}
	}
	if len(approval) > 0 && d.one(2) {
		return op(d.pick([]string{"approve", "deny"}), d.name("a"), d.pick(approval))
	}
	if len(approval) == 0 && len(client) == 0 && d.one(2) {
		return op("approve", d.name("a"), "unknown")
	}
	d.Shuffle(len(client), func(i, j int) { client[i], client[j] = client[j], client[i] })
	switch d.IntN(8) {
	case 0:
		client = append(client, "unknown")
	case 1:
		if len(client) > 0 {
			client = append(client, client[0])
		}
	case 2:
		if len(client) > 0 {
			client[0] += "!"
		}
	case 3:
		client = client[:len(client)/2]
	case 4, 5:
		for i := range d.IntN(len(client) + 1) {
			client[i] += "?"
		}
	}
	if len(client) == 0 {
		client = []string{"unknown"}
	}
	args := []any{d.name("t")}
	for _, id := range client {
		args = append(args, id)
	}
	return op("bring", args...)
}

func (d *drawer) pick(from []string) string {
	if len(from) == 0 {
		return "none"
	}
	return from[d.IntN(len(from))]
}

// user is any User message, newer ones more often.
func (d *drawer) user() string {
	var names []string
	for _, m := range d.chat.People() {
		if m.Role == v1beta1.RoleUser {
			names = append(names, m.Name)
		}
	}
	return d.pick(names[min(d.IntN(len(names)+1), max(len(names)-1, 0)):])
}

// message is any message that is there, newer ones more often.
func (d *drawer) message() string {
	var names []string
	for _, m := range d.chat.History {
		names = append(names, m.Name)
	}
	names = names[min(d.IntN(len(names)+1), max(len(names)-1, 0)):]
	if people := d.chat.People(); len(people) > 0 && d.one(4) {
		names = append(names, people[d.IntN(len(people))].Name)
	}
	return d.pick(names)
}

func (d *drawer) queued() string { return d.pick(d.chat.Queue) }

// mayHurry draws whether the next operation follows at once: after what changes nothing, and after a message that is
// queued whatever comes next.
func (d *drawer) mayHurry(o operation) bool {
	return d.one(3) && slices.Contains([]string{"label", "reapply", "late"}, o.verb)
}
