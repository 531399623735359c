// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"slices"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/test/kit/check"
)

func TestTheDescriptionInOpenAPIHasTheStreams(t *testing.T) {
	_, described := rest.New(rest.Options{})
	namespace := described.Paths["/v1beta1/namespaces/{namespace}/chats"]
	chat := described.Paths["/v1beta1/namespaces/{namespace}/chats/{chat}/stream"]
	for name, c := range map[string]struct {
		op   *huma.Operation
		want []string
	}{
		"of a chat": {chat.Get, []string{
			stream.EventMessage, stream.EventMessagePart, stream.EventNote, stream.EventNoteDeleted,
			stream.EventQueueUpdate, stream.EventStatus, stream.EventError, stream.EventRequiresAction, stream.EventRetry,
			stream.EventPreviewReset, stream.EventHistoryReset, stream.EventDeleted, stream.EventClosing}},
		"of a namespace": {namespace.Get, []string{stream.EventAdded, stream.EventModified, stream.EventDeleted,
			stream.EventSynced, stream.EventListReset, stream.EventClosing}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, event := range c.op.Responses["200"].Content["text/event-stream"].Schema.Items.OneOf {
				got = append(got, event.Properties["event"].Extensions["const"].(string))
				data := event.Properties["data"]
				if data.Ref != "" {
					data = described.Components.Schemas.SchemaFromRef(data.Ref)
				}
				if data.AdditionalProperties == false {
					t.Errorf("%s may have no field that is new", got[len(got)-1])
				}
			}
			slices.Sort(got)
			slices.Sort(c.want)
			check.Equal(t, "events", c.want, got)
		})
	}
	request := described.Components.Schemas.SchemaFromRef("#/components/schemas/NewMessageBody")
	if request.AdditionalProperties != false {
		t.Error("a misspelt field of a request is no error")
	}
}
