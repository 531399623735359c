// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"parley.dev/parley/api/stream"
)

// noFields is the data of an event that has none.
type noFields struct{}

// eventsOfChat are the events of the stream of a chat, by name, and eventsOfList those of the stream of a namespace.
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

// describeStreams describes the streams, which the gateway serves itself.
func describeStreams(described *huma.OpenAPI) {
	registry := described.Components.Schemas
	list := described.Paths["/v1beta1/namespaces/{namespace}/chats"].Get
	namespace, refusal := list.Parameters[0], list.Responses["default"]
	text := &huma.Schema{Type: huma.TypeString}
	last := &huma.Param{Name: "Last-Event-ID", In: "header", Schema: text,
		Description: "Of the last event that the client has: the stream continues behind it."}
	lastInQuery := &huma.Param{Name: "lastEventId", In: "query", Schema: text,
		Description: "As Last-Event-ID, for clients that set no headers."}

	list.Parameters = append(list.Parameters, &huma.Param{Name: "watch", In: "query", AllowEmptyValue: true, Schema: text,
		Description: "Whatever its value: how the chats stand, all of them and then each change, as server-sent events."},
		last, lastInQuery)
	list.Responses["200"].Content["text/event-stream"] = eventStream(registry, eventsOfList)

	described.AddOperation(&huma.Operation{
		OperationID: "followChat", Method: http.MethodGet, Path: "/v1beta1/namespaces/{namespace}/chats/{chat}/stream",
		Summary:     "Follow a chat",
		Description: "What is committed and what is being said, as server-sent events: see docs/reference/stream.md.",
		Parameters: []*huma.Param{namespace, last, lastInQuery,
			{Name: "chat", In: "path", Required: true, Schema: text, Description: "The chat."},
			{Name: "from", In: "query", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"now"}},
				Description: "now leaves out what was committed before, and goes without last. Without it the stream begins with " +
					"the first message."},
			{Name: "last", In: "query", Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: new(float64(1))},
				Description: "How many messages to begin with."}},
		Responses: map[string]*huma.Response{"default": refusal, "200": {Description: "OK",
			Content: map[string]*huma.MediaType{"text/event-stream": eventStream(registry, eventsOfChat)}}},
	})
}

// eventStream describes server-sent events as a list. Each has one of the names, and data of its type as JSON.
func eventStream(registry huma.Registry, events map[string]reflect.Type) *huma.MediaType {
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
				"id": {Type: huma.TypeString, Description: "To resume behind; events that describe the present have none, " +
					"except the first status with from=now."},
				"data": registry.Schema(events[name], true, events[name].Name()),
			}})
	}
	return &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{OneOf: one}}}
}

// openAnswers allows answers and events to have fields that are not described, which clients ignore. Requests may not
// have them, so that a misspelt field is an error.
func openAnswers(described *huma.OpenAPI) {
	seen := map[*huma.Schema]bool{}
	for _, item := range described.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Delete} {
			if op == nil {
				continue
			}
			for _, answer := range op.Responses {
				for _, content := range answer.Content {
					open(described.Components.Schemas, content.Schema, seen)
				}
			}
		}
	}
}

func open(registry huma.Registry, s *huma.Schema, seen map[*huma.Schema]bool) {
	if s != nil && s.Ref != "" {
		s = registry.SchemaFromRef(s.Ref)
	}
	if s == nil || seen[s] {
		return
	}
	seen[s] = true
	if s.AdditionalProperties == false {
		s.AdditionalProperties = nil
	}
	for _, property := range s.Properties {
		open(registry, property, seen)
	}
	for _, one := range s.OneOf {
		open(registry, one, seen)
	}
	open(registry, s.Items, seen)
}

// Description is the description of the operations as docs/reference/gateway-openapi.json has it.
func Description(openAPI *huma.OpenAPI) ([]byte, error) {
	raw, err := json.Marshal(openAPI)
	if err != nil {
		return nil, fmt.Errorf("describing the operations: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", " "); err != nil {
		return nil, fmt.Errorf("describing the operations: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
