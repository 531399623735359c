// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/compose"
)

const (
	// temporarySeconds is for how long a chat is kept that was created without a name: an hour.
	temporarySeconds int32 = 3600
	// threadSeconds is for how long one is kept that a client knows by its own name: a week.
	threadSeconds int32 = 7 * 24 * 3600
	// actionSeconds is for how long calls wait for the client: an hour, since a person may have to allow one.
	actionSeconds int32 = 3600
)

// ClassPrefix begins the names of models that are ChatClasses.
const ClassPrefix = "class/"

// NewChat is the chat that a request creates.
func (r *Request) NewChat(name string) *v1alpha1.Chat {
	chat := &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name,
		Labels: map[string]string{LabelProtocol: ProtocolOpenAI}}}
	chat.Spec.SystemPrompt = r.News().Instructions
	if class, ok := strings.CutPrefix(r.Model, ClassPrefix); ok {
		chat.Spec.ChatClassName = class
	} else if r.Model != "" {
		chat.Spec.ModelConfigRef = &v1alpha1.ModelConfigReference{Name: r.Model}
	}
	if len(r.Tools) > 0 {
		chat.Spec.Tools = &v1alpha1.ChatTools{Client: r.Tools}
		chat.Spec.Limits = &v1alpha1.ChatLimits{ActionDeadlineSeconds: new(actionSeconds)}
	}
	switch {
	case r.Chat != "":
	case r.Thread != "":
		chat.Spec.Retention = &v1alpha1.ChatRetention{DeleteAfterSeconds: new(threadSeconds)}
	case r.Temporary:
		chat.Spec.Retention = &v1alpha1.ChatRetention{DeleteAfterSeconds: new(temporarySeconds)}
	}
	return chat
}

// Change is a merge patch that gives a chat the tools of a request, and its instructions if such a client has created
// the chat; nil if it has them.
func (r *Request) Change(chat *v1alpha1.Chat) map[string]any {
	spec := map[string]any{}
	var has []v1alpha1.ClientTool
	if chat.Spec.Tools != nil {
		has = chat.Spec.Tools.Client
	}
	ours := chat.Labels[LabelProtocol] != ""
	if (len(r.Tools) > 0 || r.Tools != nil && ours) && !sameTools(has, r.Tools) {
		spec["tools"] = map[string]any{"client": r.Tools}
	}
	instructions := r.News().Instructions
	if ours && instructions != "" && instructions != chat.Spec.SystemPrompt {
		spec["systemPrompt"] = instructions
	}
	if len(spec) == 0 {
		return nil
	}
	return map[string]any{"metadata": map[string]any{"resourceVersion": chat.ResourceVersion}, "spec": spec}
}

func sameTools(a, b []v1alpha1.ClientTool) bool {
	return slices.EqualFunc(a, b, func(x, y v1alpha1.ClientTool) bool {
		return x.Name == y.Name && x.Description == y.Description && sameSchema(x, y)
	})
}

func sameSchema(x, y v1alpha1.ClientTool) bool {
	if x.InputSchema == nil || y.InputSchema == nil {
		return x.InputSchema == y.InputSchema
	}
	return sameJSON(x.InputSchema, y.InputSchema)
}

// Message is what a request says to a chat: a message, or the results of calls.
func (r *Request) Message(chat *v1alpha1.Chat, name, hash string) *v1alpha1.ChatMessage {
	n := r.News()
	var m *v1alpha1.ChatMessage
	switch {
	case r.BringsHistory(chat):
		m = compose.Message(r.Namespace, chat.Name, name, r.prior())
	case len(n.Results) > 0:
		m = compose.Results(r.Namespace, chat.Name, name, n.Results)
	default:
		m = compose.Message(r.Namespace, chat.Name, name, r.said(chat, n))
	}
	m.Labels = map[string]string{LabelRequest: hash}
	if len(r.Metadata) > 0 {
		metadata, _ := json.Marshal(r.Metadata) // Texts always have a JSON.
		m.Annotations = map[string]string{AnnotationMetadata: string(metadata)}
	}
	return m
}

// MetadataOf is the metadata of the request that created a message.
func MetadataOf(m *v1alpha1.ChatMessage) (metadata map[string]string) {
	_ = json.Unmarshal([]byte(m.Annotations[AnnotationMetadata]), &metadata) // Others may have written what is none.
	return metadata
}

// ModelOf is what a client calls the model that answers a message.
func ModelOf(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) string {
	switch {
	case m.Spec.ModelConfigRef != nil:
		return m.Spec.ModelConfigRef.Name
	case chat.Spec.ModelConfigRef != nil:
		return chat.Spec.ModelConfigRef.Name
	case chat.Spec.ChatClassName != "":
		return ClassPrefix + chat.Spec.ChatClassName
	}
	return chat.Status.Model
}

func (r *Request) said(chat *v1alpha1.Chat, n News) v1alpha1.ChatMessageSpec {
	spec := r.spec()
	if len(n.Parts) == 1 && n.Parts[0].Text != nil {
		spec.Content = *n.Parts[0].Text
	} else {
		spec.Parts = n.Parts
	}
	// A client that goes on without the results that it owes will not bring them; one that has the conversation to itself
	// has left the turn that is under way.
	if r.cutsIn || len(Owed(chat)) > 0 || r.Thread != "" && busy(chat) {
		spec.WhenBusy = v1alpha1.WhenBusyInterrupt
	}
	return spec
}

func busy(chat *v1alpha1.Chat) bool { return chat.Status.Turn != nil && chat.Status.Turn.Result == "" }

// Owed are the ids of the calls that wait for a client.
func Owed(chat *v1alpha1.Chat) (ids []string) {
	if chat.Status.RequiresAction == nil {
		return nil
	}
	for _, call := range chat.Status.RequiresAction.ToolCalls {
		if call.Kind == v1alpha1.RequiresClient {
			ids = append(ids, call.ID)
		}
	}
	return ids
}

// ClientTools are the names of the tools that a client of the chat runs.
func ClientTools(chat *v1alpha1.Chat) (names []string) {
	if chat.Spec.Tools == nil {
		return nil
	}
	for _, tool := range chat.Spec.Tools.Client {
		names = append(names, tool.Name)
	}
	return names
}
