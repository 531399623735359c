// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions

import (
	"encoding/json"
	"strings"

	"parley.dev/parley/internal/generation/provider/rewrite"
)

// calls tells the calls of a reply apart, and gives each an index of its own. Servers give all calls the index 0, with
// ids or without, or one call two indexes; and some send the name of a call in pieces, so that a call is held until its
// arguments begin.
type calls struct {
	// at are the newest calls by the index that the server gives them, byID by their ids, held those without arguments.
	at   map[int64]*call
	byID map[string]*call
	held []*call
	next int64
	// chunk is the number of the newest chunk with calls.
	chunk int
}

type call struct {
	id, name  string
	index     int64
	arguments strings.Builder
	// chunk is the number of the one that it began in.
	chunk int
}

// whole reports whether the arguments are complete.
func (c *call) whole() bool {
	arguments := strings.TrimSpace(c.arguments.String())
	// Servers that repeat the name in each piece ask for each: to look at the last byte is enough for most.
	return strings.HasPrefix(arguments, "{") && strings.HasSuffix(arguments, "}") && json.Valid([]byte(arguments))
}

// piece is what a chunk adds to a call.
type piece struct {
	Index    int64   `json:"index"`
	ID       *string `json:"id"`
	Function struct {
		Name      *string `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
}

func valueOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// line changes the calls in a line.
func (c *calls) line(line []byte) []byte {
	return amend(line, func(chunk object) bool {
		delta := deltaOf(chunk)
		all := listIn(delta, "tool_calls")
		if len(all) == 0 {
			return false
		}
		if c.chunk++; c.at == nil {
			c.at, c.byID = map[int64]*call{}, map[string]*call{}
		}
		pieces := []any{}
		for _, raw := range all {
			var p piece
			if encoded, err := rewrite.Encode(raw); err != nil || json.Unmarshal(encoded, &p) != nil {
				pieces = append(pieces, raw)
				continue
			}
			if of := c.take(&p); of != nil && len(valueOf(p.Function.Arguments)) > 0 {
				pieces = append(pieces, c.begin(of, raw, &p))
			}
		}
		delta["tool_calls"] = pieces
		return true
	})
}

// take adds the piece to its call, but for its arguments. It returns nil for a piece that only repeats a call.
func (c *calls) take(p *piece) *call {
	id, name := valueOf(p.ID), valueOf(p.Function.Name)
	of := c.byID[id]
	if id == "" || of == nil {
		of = c.at[p.Index]
	}
	switch {
	case of == nil, name != "" && c.another(of, id, name, valueOf(p.Function.Arguments)):
		of = &call{index: c.next, chunk: c.chunk}
		c.next++
		c.held = append(c.held, of)
	case name != "" && of.whole():
		return nil
	}
	if of.id == "" {
		of.id = id
	}
	c.at[p.Index], c.byID[of.id] = of, of
	if of.arguments.Len() == 0 && name != of.name {
		of.name += name
	}
	return of
}

// another reports whether a piece with a name begins another call than the one that its id or its index names.
func (c *calls) another(known *call, id, name, arguments string) bool {
	switch {
	case id != "" && known.id != "" && id != known.id:
		return true
	case known.arguments.Len() == 0: // In one chunk no call has two pieces.
		return known.chunk == c.chunk
	case !known.whole():
		return false
	case strings.TrimSpace(arguments) == "":
		return id == "" && name != known.name
	}
	return id == "" || arguments != known.arguments.String()
}

// begin returns the piece with the index of its call, and the first one with its id and its whole name.
func (c *calls) begin(of *call, raw object, p *piece) object {
	raw["index"] = of.index
	if of.arguments.Len() == 0 {
		raw = c.release(of)
		raw["function"].(object)["arguments"] = *p.Function.Arguments
	}
	of.arguments.WriteString(*p.Function.Arguments)
	return raw
}

// release is the first piece of a call that was held.
func (c *calls) release(of *call) object {
	for i, held := range c.held {
		if held == of {
			c.held = append(c.held[:i:i], c.held[i+1:]...)
			break
		}
	}
	first := object{"index": of.index, "type": "function", "function": object{"name": of.name, "arguments": ""}}
	if of.id != "" {
		first["id"] = of.id
	}
	return first
}

// rest are the lines of calls that have no arguments, once the reply ends; empty if there are none.
func (c *calls) rest() []byte {
	var first []any
	for len(c.held) > 0 {
		first = append(first, c.release(c.held[0]))
	}
	if first == nil {
		return nil
	}
	encoded, err := rewrite.Encode(object{"choices": []any{object{"index": 0, "delta": object{"tool_calls": first}}}})
	if err != nil {
		return nil
	}
	return append(append([]byte("data: "), encoded...), "\n\n"...)
}
