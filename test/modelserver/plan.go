// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// program is a script that was checked and made ready to run, with the counters of its run so far.
type program struct {
	script Script
	rules  []compiledRule

	mu    sync.Mutex
	fired []int
	calls map[string]int
}

type compiledRule struct {
	name  string
	match Match
	times int
	reply Reply
	steps []compiledStep
}

type compiledStep struct {
	kind  blockKind
	text  *compiledText
	calls []compiledCall
	// search is set for a step that searches the web.
	search *Search
}

type compiledCall struct {
	ToolCall
	arguments *compiledText
}

// echo answers what no rule does.
var echo = Rule{Name: "echo", Reply: Reply{Steps: []Step{{Text: &Text{
	Value: "{{.Model}} (scripted, {{.Protocol}}) heard: {{.LastUserText}}{{with .ToolResultsText}} Tool results: " +
		"{{.}}{{end}}",
	PieceWords: 1,
}}}}}

func compile(s Script) (*program, error) {
	p := &program{script: s, calls: map[string]int{}}
	for i, r := range append(append([]Rule(nil), s.Rules...), echo) {
		c, err := compileRule(r)
		if err != nil {
			return nil, fmt.Errorf("rule %d (%q): %w", i, r.Name, err)
		}
		p.rules = append(p.rules, c)
	}
	p.fired = make([]int, len(p.rules))
	return p, nil
}

func compileRule(r Rule) (compiledRule, error) {
	c := compiledRule{name: r.Name, match: r.Match, times: r.Times, reply: r.Reply}
	if err := r.Match.validate(); err != nil {
		return c, err
	}
	if err := r.Reply.validate(); err != nil {
		return c, err
	}
	for i, s := range r.Reply.Steps {
		step, err := compileStep(s)
		if err != nil {
			return c, fmt.Errorf("step %d: %w", i, err)
		}
		c.steps = append(c.steps, step)
	}
	return c, nil
}

func compileStep(s Step) (compiledStep, error) {
	if err := s.validate(); err != nil {
		return compiledStep{}, err
	}
	if s.Search != nil {
		return compiledStep{kind: searchBlock, search: s.Search}, nil
	}
	c := compiledStep{kind: textBlock}
	source := s.Text
	if s.Reasoning != nil {
		c.kind, source = reasoningBlock, s.Reasoning
	}
	if source != nil {
		text, err := compileText(*source, false)
		c.text = text
		return c, err
	}
	c.kind = callBlock
	for _, call := range s.ToolCalls {
		text := Text{Value: "{}", PieceBytes: call.PieceBytes}
		verbatim := true
		if len(call.Arguments) > 0 {
			text.Value = string(call.Arguments)
			verbatim = json.Unmarshal(call.Arguments, &text.Value) != nil
		}
		arguments, err := compileText(text, verbatim)
		if err != nil {
			return c, fmt.Errorf("call of %s: %w", call.Name, err)
		}
		c.calls = append(c.calls, compiledCall{ToolCall: call, arguments: arguments})
	}
	return c, nil
}

type blockKind int

const (
	textBlock blockKind = iota
	reasoningBlock
	callBlock
	// searchBlock is a search of the web that the provider runs itself, and foundBlock what it has found, where that is a
	// block of its own.
	searchBlock
	foundBlock
)

// block is one block of a reply, ready to be sent.
type block struct {
	kind blockKind
	// text is the whole text, or the arguments of a call; chunks are its parts.
	text   string
	chunks []string
	// id is the id of the item that the block is in the responses protocol.
	id string
	// call is set for a call; call.ID is never empty.
	call ToolCall
	// search is set for a search and for what it has found.
	search *Search
}

// plan is a reply to one request.
type plan struct {
	rule   string
	facts  Facts
	blocks []block
	usage  Usage
	finish Finish
	// finishReason replaces the protocol's word for finish, unless it is empty.
	finishReason string
	before       time.Duration
	// between passes between two parts.
	between time.Duration
	fault   *Fault
}

// choose takes the first rule that matches and is not used up, and makes its reply to the request.
func (p *program) choose(r *request, header http.Header) (*plan, error) {
	f := r.facts()
	rule := p.take(&f, header)
	out := &plan{
		rule: rule.name, facts: f, finish: rule.reply.Finish, fault: rule.reply.Fault,
		finishReason: rule.reply.FinishReason,
		before:       time.Duration(rule.reply.DelayBefore), between: time.Duration(rule.reply.DelayBetween),
	}
	for _, s := range rule.steps {
		blocks, err := s.blocks(r, f)
		if err != nil {
			return out, fmt.Errorf("rule %q: %w", rule.name, err)
		}
		out.blocks = append(out.blocks, blocks...)
	}
	if out.finish == "" {
		out.finish = out.naturalFinish()
	}
	if rule.reply.Usage != nil {
		out.usage = *rule.reply.Usage
	} else {
		out.usage = out.estimate(r)
	}
	return out, nil
}

// take counts the request and the use of the rule in one go, so that a rule with a limit never answers once too often.
func (p *program) take(f *Facts, header http.Header) *compiledRule {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[f.Conversation]++
	f.Call = p.calls[f.Conversation]
	for i := range p.rules {
		r := &p.rules[i]
		if (r.times == 0 || p.fired[i] < r.times) && r.match.holds(*f, header) {
			p.fired[i]++
			return r
		}
	}
	return &p.rules[len(p.rules)-1]
}

func (s compiledStep) blocks(r *request, f Facts) ([]block, error) {
	if s.search != nil {
		return s.search.blocks(r)
	}
	if s.kind != callBlock {
		text, chunks, err := s.text.render(f)
		if err != nil || text == "" {
			return nil, err
		}
		return []block{{kind: s.kind, text: text, chunks: chunks, id: itemID(s.kind)}}, nil
	}
	var out []block
	for _, c := range s.calls {
		text, chunks, err := c.arguments.render(f)
		if err != nil {
			return nil, err
		}
		call := c.ToolCall
		if call.ID == "" {
			call.ID = callID(r.protocol)
		}
		out = append(out, block{kind: callBlock, text: text, chunks: chunks, id: itemID(callBlock), call: call})
	}
	return out, nil
}

// word is why the model stopped, in the words of a protocol.
func (p *plan) word(protocol func(Finish) string) string {
	return cmp.Or(p.finishReason, protocol(p.finish))
}

func (p *plan) naturalFinish() Finish {
	for _, b := range p.blocks {
		if b.kind == callBlock {
			return FinishToolCalls
		}
	}
	return FinishStop
}

// bytesPerToken is the rule of thumb for English text that providers give in their documentation.
const bytesPerToken = 4

func (p *plan) estimate(r *request) Usage {
	var in, out, reasoning int
	for _, t := range r.turns {
		in += len(t.text)
	}
	for _, b := range p.blocks {
		out += len(b.text)
		if b.kind == reasoningBlock {
			reasoning += len(b.text)
		}
	}
	return Usage{Input: in/bytesPerToken + 1, Output: out/bytesPerToken + 1, Reasoning: reasoning / bytesPerToken}
}

// parts is the number of parts that a full reply has.
func (p *plan) parts() int {
	n := 0
	for _, b := range p.blocks {
		n += len(b.chunks)
	}
	return n
}
