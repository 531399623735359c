// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley.dev/parley/test/model/reference"
)

// operation is something that somebody does to a chat. Its text can be read back.
type operation struct {
	verb string
	args []string
	// hasty is true when the next operation follows without waiting for what this one brings about.
	hasty bool
}

func op(verb string, args ...any) operation {
	o := operation{verb: verb}
	for _, arg := range args {
		o.args = append(o.args, fmt.Sprint(arg))
	}
	return o
}

// arg is an argument, or nothing.
func (o operation) arg(n int) string {
	if n < len(o.args) {
		return o.args[n]
	}
	return ""
}

func (o operation) String() string {
	text := strings.Join(append([]string{o.verb}, o.args...), " ")
	if o.hasty {
		return "& " + text
	}
	return text
}

// text is a sequence in the form that -replay reads.
func text(ops []operation) string {
	words := make([]string, 0, len(ops))
	for _, o := range ops {
		words = append(words, o.String())
	}
	return strings.Join(words, "; ")
}

// parse reads a sequence.
func parse(text string) ([]operation, error) {
	var ops []operation
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		words := strings.Fields(line)
		hasty := len(words) > 0 && words[0] == "&"
		if hasty {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		if _, ok := verbs[words[0]]; !ok {
			return nil, fmt.Errorf("there is no operation %q", words[0])
		}
		ops = append(ops, operation{verb: words[0], args: words[1:], hasty: hasty})
	}
	if len(ops) == 0 || ops[0].verb != "chat" {
		return nil, fmt.Errorf("a sequence begins with the operation chat")
	}
	return ops, nil
}

// verb is a kind of operation: when it is possible, what it means in the model, and how it is done on the cluster.
type verb struct {
	able  func(c *reference.Chat, o operation) bool
	model func(c *reference.Chat, o operation)
	real  func(ctx context.Context, d *driver, o operation) error
}

// verbs is every kind of operation but the first, chat, which begins a sequence.
var verbs map[string]verb

func init() { // The verbs need parse, and parse needs the verbs.
	verbs = map[string]verb{"chat": {}}
	for _, group := range []map[string]verb{
		peopleVerbs, steerVerbs, actionVerbs, generatorVerbs, familyVerbs, quotaVerbs, budgetVerbs, modelVerbs,
		referenceVerbs,
	} {
		maps.Copy(verbs, group)
	}
}

// possible reports whether the operation can be carried out now.
// In a sequence that is being shrunk it may have lost its object.
func possible(c *reference.Chat, o operation) bool {
	v, ok := verbs[o.verb]
	return ok && v.able != nil && v.able(c, o)
}

func always(*reference.Chat, operation) bool { return true }

func nothing(*reference.Chat, operation) {}

// means changes the model as the operation says. Chats that are at work take their messages up then, and places that
// have become free are handed out.
func means(c *reference.Chat, o operation) {
	verbs[o.verb].model(c, o)
	c.TakeWaiting()
	c.HandOut()
}

// beginning is the model of a new chat.
func beginning(o operation) *reference.Chat {
	c := reference.New(limitsOf(o))
	if isModelless(o) {
		c.TakeModel()
	}
	if missing := reasonOf(o); missing != "" {
		c.Refer(missing)
	}
	begins(c, o)
	return c
}

func limitsOf(o operation) reference.Limits {
	limits := reference.Limits{MaxQueue: 20, MaxSteps: 1200, Impatient: slices.Contains(o.args, "impatient"),
		StopsAfterClient: slices.Contains(o.args, "stops")}
	for _, arg := range o.args {
		_, _ = fmt.Sscanf(arg, "maxQueue=%d", &limits.MaxQueue) // Other arguments do not match.
		_, _ = fmt.Sscanf(arg, "maxSteps=%d", &limits.MaxSteps)
	}
	return limits
}

// begins lets a chat begin as it was created: suspended, or with a prompt.
func begins(c *reference.Chat, o operation) {
	if slices.Contains(o.args, "suspended") {
		c.Suspend()
	}
	if slices.Contains(o.args, "prompt") {
		c.Send("prompt", false)
	}
}
