// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"

	"parley.dev/parley/internal/generation/provider/wire"
)

// extraContent is the field of a call with what Google's models want back with it.
const extraContent = "extra_content"

// calls tells the calls of a reply apart. Servers give all calls the index 0, with ids or without, or one call two
// indexes; and some send the name of a call in pieces, so that a call begins with its arguments.
type calls struct {
	parts *wire.Parts
	// all are in the order of their beginnings; at are the newest by the index that the server gives them, byID by their
	// ids.
	all  []*call
	at   map[int64]*call
	byID map[string]*call
	// chunk is the number of the newest chunk with calls.
	chunk int
}

type call struct {
	// id is the server's; empty: it gave none.
	id, name  string
	arguments strings.Builder
	state     *wire.State
	// number is its own, chunk that of the one that it began in.
	number, chunk int
	// shown is the id that it has started with; empty: it has not started.
	shown string
}

// whole reports whether the arguments are complete.
func (c *call) whole() bool {
	arguments := strings.TrimSpace(c.arguments.String())
	// Servers that repeat the name in each piece ask for each: to look at the last byte is enough for most.
	return strings.HasPrefix(arguments, "{") && strings.HasSuffix(arguments, "}") && json.Valid([]byte(arguments))
}

// piece is what a chunk adds to a call.
type piece = openai.ChatCompletionChunkChoiceDeltaToolCall

// add reads the pieces of a chunk.
func (c *calls) add(pieces []piece) {
	if len(pieces) > 0 {
		c.chunk++
	}
	for i := range pieces {
		p := &pieces[i]
		of := c.take(p)
		if of == nil {
			continue
		}
		if extra := p.JSON.ExtraFields[extraContent]; extra.Raw() != "" {
			of.state = &wire.State{Item: json.RawMessage(extra.Raw())}
		}
		if p.Function.Arguments != "" {
			c.begin(of)
			of.arguments.WriteString(p.Function.Arguments)
			c.parts.CallInput(of.shown, p.Function.Arguments)
		}
	}
}

// take adds the piece to its call, but for its arguments. It returns nil for a piece that only repeats a call.
func (c *calls) take(p *piece) *call {
	of := c.byID[p.ID]
	if p.ID == "" || of == nil {
		of = c.at[p.Index]
	}
	switch {
	case of == nil, p.Function.Name != "" && c.another(of, p):
		of = &call{number: len(c.all), chunk: c.chunk}
		c.all = append(c.all, of)
	case p.Function.Name != "" && of.whole():
		return nil
	}
	of.id = cmp.Or(of.id, p.ID)
	c.at[p.Index], c.byID[of.id] = of, of
	if of.arguments.Len() == 0 && p.Function.Name != of.name {
		of.name += p.Function.Name
	}
	return of
}

// another reports whether a piece with a name begins another call than the one that its id or its index names.
func (c *calls) another(known *call, p *piece) bool {
	switch {
	case p.ID != "" && known.id != "" && p.ID != known.id:
		return true
	case known.arguments.Len() == 0: // In one chunk no call has two pieces.
		return known.chunk == c.chunk
	case !known.whole():
		return false
	case strings.TrimSpace(p.Function.Arguments) == "":
		return p.ID == "" && p.Function.Name != known.name
	}
	return p.ID == "" || p.Function.Arguments != known.arguments.String()
}

// begin shows that the call begins, unless it has.
func (c *calls) begin(of *call) {
	if of.shown == "" {
		of.shown = cmp.Or(of.id, fmt.Sprintf("tool-call-%d", of.number))
		c.parts.BeginCall(wire.Call{ID: of.shown, Name: of.name})
	}
}

// end passes on the calls at the end of the reply, but for one without a name and arguments.
func (c *calls) end() {
	for _, of := range c.all {
		if of.name != "" || of.arguments.Len() > 0 {
			c.begin(of)
			c.parts.Call(wire.Call{ID: of.shown, Name: of.name, Input: of.arguments.String(), State: of.state})
		}
	}
}
