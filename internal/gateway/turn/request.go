// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package turn is the interface between chats and the protocols of other APIs. A request names a chat and its new
// messages. A Story makes the events of the answer from those of the chat. Each protocol translates both. The package
// is pure.
//
// An answer is what generation pods produce between the message of the request and the next message of someone else. So
// the name of that message is enough to find the answer again.
package turn

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
)

// Kind is the kind of an item of a request.
type Kind string

const (
	// System is an instruction.
	System Kind = "System"
	// User is a message to the model.
	User Kind = "Said"
	// Reply is an earlier reply of the model: the client resends the conversation.
	Reply Kind = "Replied"
	// ToolCall is an earlier call of the model.
	ToolCall Kind = "Called"
	// ToolResult is the result of a call.
	ToolResult Kind = "Returned"
)

// Item is an item of the conversation. Its JSON is part of Request.Hash, so it must not change.
type Item struct {
	Kind Kind
	// Text of System and Reply, and the output of ToolResult.
	Text string
	// Parts of User: texts and files.
	Parts []v1beta1.MessagePart
	// Call is the id of a ToolCall and its ToolResult, as the client has it.
	Call string
	// IsError is whether Text of ToolResult is an error.
	IsError bool
	// Name of the tool of a ToolCall, and Input, its arguments.
	Name, Input string
}

// Request is a request of a client.
type Request struct {
	Settings

	// Namespace of the chat.
	Namespace string
	// Chat is the name of the chat to continue, or to create; empty: see Thread.
	Chat string
	// Previous is the name of a message of the chat to continue; empty: none.
	Previous string
	// Thread is the client's own name of the conversation; empty: none.
	Thread string
	// Model is the name of a ChatModelConfig, or class/ and that of a ChatClass; empty: the namespace's default.
	Model string
	// Items of the conversation that the client sends.
	Items []Item
	// Tools that the client runs; nil: the request does not have the field.
	Tools []v1beta1.ClientTool
	// Temporary is whether a chat that is created without a name is deleted soon after it came to rest.
	Temporary bool
	// Key is the idempotency key: a second request with it creates nothing. Empty: none.
	Key string
	// Metadata of the client, which its answers repeat.
	Metadata map[string]string
	// results are those in the same request that WithoutResults has removed; none: the request has no message next to
	// results.
	results []Item
	// Retried is whether the client repeats the request because it does not know its outcome.
	Retried bool
}

// News is what the chat does not have yet.
type News struct {
	// Instructions are all of the request.
	Instructions string
	// Parts of the new message, and Results of calls, by their ids in the chat.
	Parts   []v1beta1.MessagePart
	Results []v1beta1.ToolResult
	// Earlier are results before the last reply or call, by the ids of their calls: of earlier steps, or of the newest one
	// if each result follows its own call.
	Earlier map[string]v1beta1.ToolResult
	// Resent is whether the client has resent replies of the model.
	Resent bool
	// Chat is the name of the chat that made the calls of the conversation; empty if there are none, or unknown ones.
	Chat string
}

// News returns what follows the last reply.
func (r *Request) News() News {
	var n News
	var instructions []string
	for i := range r.Items {
		switch item := &r.Items[i]; item.Kind {
		case System:
			instructions = append(instructions, item.Text)
		case User:
			n.Parts = append(n.Parts, item.Parts...)
		case Reply, ToolCall:
			n.pass()
			n.Parts, n.Results, n.Resent = nil, nil, true
			delete(n.Earlier, n.localID(item.Call)) // Some models give calls of several steps the same id.
		case ToolResult:
			id := n.localID(item.Call)
			delete(n.Earlier, id)
			n.Results = append(n.Results, v1beta1.ToolResult{ID: id, Output: asJSON(item.Text), IsError: item.IsError})
		}
	}
	n.Instructions = strings.Join(instructions, "\n\n")
	return n
}

// pass makes the results earlier ones.
func (n *News) pass() {
	if n.Earlier == nil && n.Results != nil {
		n.Earlier = map[string]v1beta1.ToolResult{}
	}
	for i := range n.Results {
		n.Earlier[n.Results[i].ID] = n.Results[i]
	}
}

// ResultsFor are the results that are sent to the chat: those after the last call, and earlier ones that it waits for.
func (n *News) ResultsFor(chat *v1beta1.Chat) (results []v1beta1.ToolResult) {
	for _, id := range PendingCalls(chat) {
		if result, ok := n.Earlier[id]; ok {
			results = append(results, result)
		}
	}
	return append(results, n.Results...)
}

// WithoutResults is the request without results of calls. Its message interrupts, so that the model answers both at
// once.
func (r *Request) WithoutResults() *Request {
	rest := *r
	rest.Items = nil
	for i := range r.Items {
		if item := r.Items[i]; item.Kind == ToolResult {
			rest.results = append(rest.results, item)
		} else {
			rest.Items = append(rest.Items, item)
		}
	}
	if r.Key != "" {
		rest.Key += "/said"
	}
	return &rest
}

// localID notes the chat of a call, and returns the id of the call in it.
func (n *News) localID(call string) string {
	id, chat, ok := SplitCall(call)
	if !ok {
		return call
	}
	n.Chat = chat
	return id
}

// asJSON is an output as JSON: any other text becomes a JSON string.
func asJSON(output string) string {
	if json.Valid([]byte(output)) {
		return output
	}
	quoted, _ := json.Marshal(output) // A string always has a JSON.
	return string(quoted)
}

// Settings of an answer belong to the User message that begins the turn. Results of calls continue a turn with its
// settings.
type Settings struct {
	// Effort of the turn; empty: that of the chat.
	Effort v1beta1.ReasoningEffort
	// Output is the schema that the answer matches; nil: that of the chat.
	Output *v1beta1.OutputFormat
	// ToolChoice of the first reply; nil: the model decides.
	ToolChoice *v1beta1.ToolChoice
	// Stop are texts at which the model stops.
	Stop []string
}

// Setting is one of the settings that results of calls cannot change.
type Setting string

const (
	// SettingOutput is Settings.Output.
	SettingOutput Setting = "Output"
	// SettingToolChoice is Settings.ToolChoice.
	SettingToolChoice Setting = "ToolChoice"
	// SettingStop is Settings.Stop.
	SettingStop Setting = "Stop"
)

// SettingError means that a request with results of calls has another setting than the turn that they continue.
type SettingError struct{ Setting Setting }

// Error implements error.
func (e *SettingError) Error() string {
	return "results of calls continue a turn, which has another value: repeat that one, or leave the field out"
}

// Continue returns an error if the settings differ from those of the turn that results continue, which the message
// began has begun. Clients may repeat or omit settings.
func (s *Settings) Continue(chat *v1beta1.Chat, began *v1beta1.ChatMessage) error {
	switch {
	case s.Output != nil && !sameOutput(s.Output, OutputOf(chat, began)):
		return &SettingError{SettingOutput}
	case s.ToolChoice != nil && (began.Spec.ToolChoice == nil || *s.ToolChoice != *began.Spec.ToolChoice):
		return &SettingError{SettingToolChoice}
	case len(s.Stop) > 0 && !slices.Equal(s.Stop, began.Spec.Stop):
		return &SettingError{SettingStop}
	}
	return nil
}

func sameOutput(a, b *v1beta1.OutputFormat) bool {
	return b != nil && sameJSON(&a.Schema, &b.Schema)
}

// sameJSON compares the content of two objects, since the API server changes the order of members.
func sameJSON(a, b *runtime.RawExtension) bool {
	var x, y any
	return json.Unmarshal(a.Raw, &x) == nil && json.Unmarshal(b.Raw, &y) == nil && reflect.DeepEqual(x, y)
}

// AnnotationOutput on results of calls means that the answer of the turn that they continue is JSON.
const AnnotationOutput = "parley.dev/output"

// OutputOf is the format of the answer to a message; nil for text. The schema of an answer to results is not known,
// because an earlier message has it.
func OutputOf(chat *v1beta1.Chat, m *v1beta1.ChatMessage) *v1beta1.OutputFormat {
	if m.Annotations[AnnotationOutput] != "" {
		return &v1beta1.OutputFormat{Schema: runtime.RawExtension{Raw: AnyObject()}}
	}
	return cmp.Or(m.Spec.Output, chat.Spec.Output)
}

// AnyObject is the schema that every object matches.
func AnyObject() []byte { return []byte(`{"type":"object"}`) }

// spec is a message without content, with the settings of the request.
func (r *Request) spec() v1beta1.ChatMessageSpec {
	spec := v1beta1.ChatMessageSpec{ReasoningEffort: r.Effort, Output: r.Output, ToolChoice: r.ToolChoice, Stop: r.Stop}
	if r.Model != "" && !strings.HasPrefix(r.Model, ClassPrefix) {
		spec.ModelConfigRef = &v1beta1.ModelConfigReference{Name: r.Model}
	}
	return spec
}
