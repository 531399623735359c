// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

// Chat is a Chat in an answer. Its resource definition describes it.
type Chat v1alpha1.Chat

// Message is a ChatMessage in an answer.
type Message v1alpha1.ChatMessage

// Approval is a ToolApproval in an answer.
type Approval v1alpha1.ToolApproval

// Schema says which kind it is.
func (Chat) Schema(huma.Registry) *huma.Schema { return resource("Chat") }

// Schema says which kind it is.
func (Message) Schema(huma.Registry) *huma.Schema { return resource("ChatMessage") }

// Schema says which kind it is.
func (Approval) Schema(huma.Registry) *huma.Schema { return resource("ToolApproval") }

func resource(kind string) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, Description: "The " + kind + " as the API server has it, without metadata.managedFields.",
		AdditionalProperties: true,
		Extensions: map[string]any{"x-kubernetes-group-version-kind": map[string]string{
			"group": v1alpha1.GroupVersion.Group, "version": v1alpha1.GroupVersion.Version, "kind": kind}},
	}
}

// Fields are those of a resource, as its definition has them. The API server says whether they will do.
type Fields map[string]any

// Schema is any object.
func (Fields) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// into reads fields of a resource. One that it has not is refused here, since a typed object would lose it.
func into(name string, given, out any) error {
	raw, err := json.Marshal(given)
	if err != nil {
		return badRequest("%s cannot be read: %v", name, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(out); err != nil {
		return badRequest("%s cannot be read: %v", name, err)
	}
	return nil
}

// kinds of the answers: a typed client leaves them out.
func shown(o metav1.Object, t *metav1.TypeMeta, kind string) {
	o.SetManagedFields(nil)
	*t = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
}

func shownChat(c *v1alpha1.Chat) *Chat {
	shown(c, &c.TypeMeta, "Chat")
	return (*Chat)(c)
}

func shownMessage(m *v1alpha1.ChatMessage) *Message {
	shown(m, &m.TypeMeta, "ChatMessage")
	return (*Message)(m)
}

func shownApproval(a *v1alpha1.ToolApproval) *Approval {
	shown(a, &a.TypeMeta, "ToolApproval")
	return (*Approval)(a)
}
