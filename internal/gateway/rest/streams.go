// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"parley.dev/parley/api/stream"
)

// noFields is the data of an event that says all by its name.
type noFields struct{}

// eventsOfChat are the events of the stream of a chat, by their names, and eventsOfList those of a namespace's.
var (
	eventsOfChat = map[string]reflect.Type{
		stream.EventMessage:        reflect.TypeFor[stream.MessageCommitted](),
		stream.EventMessagePart:    reflect.TypeFor[stream.MessagePart](),
		stream.EventNote:           reflect.TypeFor[stream.Note](),
		stream.EventNoteDeleted:    reflect.TypeFor[stream.NoteDeleted](),
		stream.EventQueueUpdate:    reflect.TypeFor[stream.QueueUpdate](),
		stream.EventStatus:         reflect.TypeFor[stream.Status](),
		stream.EventError:          reflect.TypeFor[stream.Error](),
		stream.EventRequiresAction: reflect.TypeFor[stream.RequiresAction](),
		stream.EventRetry:          reflect.TypeFor[stream.Retry](),
		stream.EventPreviewReset:   reflect.TypeFor[stream.PreviewReset](),
		stream.EventHistoryReset:   reflect.TypeFor[noFields](),
		stream.EventDeleted:        reflect.TypeFor[noFields](),
		stream.EventClosing:        reflect.TypeFor[stream.Closing](),
	}
	eventsOfList = map[string]reflect.Type{
		stream.EventAdded: reflect.TypeFor[stream.Summary](), stream.EventModified: reflect.TypeFor[stream.Summary](),
		stream.EventDeleted: reflect.TypeFor[stream.Deleted](), stream.EventSynced: reflect.TypeFor[noFields](),
		stream.EventListReset: reflect.TypeFor[noFields](), stream.EventClosing: reflect.TypeFor[stream.Closing](),
	}
)

// streams describes the streams, which the gateway serves itself.
func (a *api) streams() {
	described := a.huma.OpenAPI()
	list := described.Paths["/v1alpha1/namespaces/{namespace}/chats"].Get
	namespace, refusal := list.Parameters[0], list.Responses["default"]
	text := &huma.Schema{Type: huma.TypeString}
	last := &huma.Param{Name: "Last-Event-ID", In: "header", Schema: text,
		Description: "Of the last event that the client has: the stream continues behind it."}
	lastInQuery := &huma.Param{Name: "lastEventId", In: "query", Schema: text,
		Description: "As Last-Event-ID, for clients that set no headers."}

	list.Parameters = append(list.Parameters, &huma.Param{Name: "watch", In: "query", AllowEmptyValue: true, Schema: text,
		Description: "Whatever its value: how the chats stand, all of them and then each change, as server-sent events."},
		last, lastInQuery)
	list.Responses["200"].Content["text/event-stream"] = a.eventStream(eventsOfList)

	described.AddOperation(&huma.Operation{
		OperationID: "followChat", Method: http.MethodGet, Path: "/v1alpha1/namespaces/{namespace}/chats/{chat}/stream",
		Summary:     "Follow a chat",
		Description: "What is committed and what is being said, as server-sent events. docs/stream.md says when each comes.",
		Parameters: []*huma.Param{namespace, last, lastInQuery,
			{Name: "chat", In: "path", Required: true, Schema: text, Description: "The chat."},
			{Name: "from", In: "query", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"now"}},
				Description: "now leaves out what was committed before, and goes without last. Without it the stream begins with " +
					"the first message."},
			{Name: "last", In: "query", Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: new(float64(1))},
				Description: "How many messages to begin with."}},
		Responses: map[string]*huma.Response{"default": refusal, "200": {Description: "OK",
			Content: map[string]*huma.MediaType{"text/event-stream": a.eventStream(eventsOfChat)}}},
	})
}

// eventStream describes server-sent events as the list of those that have come: each has one of the names, and data of
// its type as JSON.
func (a *api) eventStream(events map[string]reflect.Type) *huma.MediaType {
	registry := a.huma.OpenAPI().Components.Schemas
	var one []*huma.Schema
	for _, name := range slices.Sorted(maps.Keys(events)) {
		words := strings.Split(name, "_")
		for i := range words {
			words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
		}
		one = append(one, &huma.Schema{Title: strings.Join(words, ""), Type: huma.TypeObject,
			Required: []string{"event", "data"},
			Properties: map[string]*huma.Schema{
				"event": {Type: huma.TypeString, Extensions: map[string]any{"const": name}},
				"id":    {Type: huma.TypeString, Description: "To resume behind; events that describe the present have none."},
				"data":  registry.Schema(events[name], true, events[name].Name()),
			}})
	}
	return &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{OneOf: one}}}
}
