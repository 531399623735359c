// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package turn is what clients of foreign protocols ask for and are told, in no protocol's words: a request names a
// chat and says what is new; a Story makes of the chat's events what belongs to the answer. Each protocol translates
// into it and out of it. The package is pure.
//
// An answer is what the chat says between the message that the request created and the next one that somebody else than
// a generation pod has written. So the name of that message is all that a client has to keep to find the answer again.
package turn

import (
	"encoding/json"
	"slices"
	"strings"

	"parley.dev/parley/api/v1alpha1"
)

// Kind is what an item of a request is.
type Kind string

const (
	// System is an instruction.
	System Kind = "System"
	// Said is what somebody says to the model.
	Said Kind = "Said"
	// Replied is what the model has said before: the client resends the conversation.
	Replied Kind = "Replied"
	// Called is a call that the model has made before.
	Called Kind = "Called"
	// Returned is the result of a call.
	Returned Kind = "Returned"
)

// Item is one thing of which a request consists, in the order of the conversation.
type Item struct {
	Kind Kind
	// Text of System and Replied, and the output of Returned.
	Text string
	// Parts of Said: texts and files.
	Parts []v1alpha1.MessagePart
	// Call is the id of the call, of Called and Returned, as the client knows it.
	Call string
	// IsError is whether Text of Returned says why the call failed.
	IsError bool
	// Name of what is called, and Input, its arguments, of Called.
	Name, Input string
}

// Request is what a client asks for.
type Request struct {
	Settings

	// Namespace of the chat.
	Namespace string
	// Chat is the name of the chat that goes on, or that is created if there is none; empty: see Thread.
	Chat string
	// Previous is the name of the message whose chat goes on; empty: none is named.
	Previous string
	// Thread is the client's own name of the conversation; empty: it has none.
	Thread string
	// Model is what the client calls the model: the name of a ChatModelConfig, or class/ and that of a ChatClass; empty:
	// the namespace's default.
	Model string
	// Items of the conversation, as far as the client sends it.
	Items []Item
	// Tools that the client runs; nil: the request says nothing of them.
	Tools []v1alpha1.ClientTool
	// Temporary is whether a chat that is created without a name goes soon after it came to rest.
	Temporary bool
	// Key names the request: a second one with it creates nothing. Empty: it has no name.
	Key string
	// Metadata of the client, which its answers repeat.
	Metadata map[string]string
	// cutsIn is whether what is said follows on results of calls, in the same request.
	cutsIn bool
	// Retried is whether the client makes the request again because it does not know what became of it.
	Retried bool
}

// News is what a request says that the chat does not know yet.
type News struct {
	// Instructions are all of the request.
	Instructions string
	// Parts that are said, and Results of calls, by the ids that the chat gave them.
	Parts   []v1alpha1.MessagePart
	Results []v1alpha1.ToolResult
	// Resent is whether the client has resent what the model said.
	Resent bool
	// Chat is the name of the chat that made the calls of the conversation; empty if there are none, or none of ours.
	Chat string
}

// News are what follows the last reply.
func (r *Request) News() News {
	var n News
	var instructions []string
	for i := range r.Items {
		switch item := &r.Items[i]; item.Kind {
		case System:
			instructions = append(instructions, item.Text)
		case Said:
			n.Parts = append(n.Parts, item.Parts...)
		case Replied:
			n.Parts, n.Results, n.Resent = nil, nil, true
		case Called:
			n.Parts, n.Results, n.Resent = nil, nil, true
			n.of(item.Call)
		case Returned:
			id := n.of(item.Call)
			n.Results = append(n.Results, v1alpha1.ToolResult{ID: id, Output: asJSON(item.Text), IsError: item.IsError})
		}
	}
	n.Instructions = strings.Join(instructions, "\n\n")
	return n
}

// Behind is what the request says besides results of calls. It cuts in, so that the model answers both at once.
func (r *Request) Behind() *Request {
	behind := *r
	behind.cutsIn = true
	behind.Items = slices.DeleteFunc(slices.Clone(r.Items), func(i Item) bool { return i.Kind == Returned })
	if r.Key != "" {
		behind.Key += "/said"
	}
	return &behind
}

// of notes the chat that a call is of, and returns the call's id within it.
func (n *News) of(call string) string {
	id, chat, ok := SplitCall(call)
	if !ok {
		return call
	}
	n.Chat = chat
	return id
}

// asJSON is an output as chats take it: JSON as it is, and any other text as a JSON string.
func asJSON(output string) string {
	if json.Valid([]byte(output)) {
		return output
	}
	quoted, _ := json.Marshal(output) // A string always has a JSON.
	return string(quoted)
}
