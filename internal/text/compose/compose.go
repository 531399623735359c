// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compose makes the objects and patches that kubectl chat and the gateway send to change a chat. The API server
// validates them.
package compose

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// Message is a User message to a chat. If the name is empty, the API server generates one.
func Message(namespace, chat, name string, spec v1beta1.ChatMessageSpec) *v1beta1.ChatMessage {
	spec.ChatRef, spec.Role = v1beta1.ChatReference{Name: chat}, v1beta1.RoleUser
	return &v1beta1.ChatMessage{ObjectMeta: objectMeta(namespace, name, chat+"-message-"), Spec: spec}
}

// Results is a Tool message with the results of calls that wait for a client.
func Results(namespace, chat, name string, results []v1beta1.ToolResult) *v1beta1.ChatMessage {
	parts := make([]v1beta1.MessagePart, 0, len(results))
	for i := range results {
		parts = append(parts, v1beta1.MessagePart{Type: v1beta1.PartToolResult, ToolResult: &results[i]})
	}
	return &v1beta1.ChatMessage{ObjectMeta: objectMeta(namespace, name, chat+"-results-"), Spec: v1beta1.ChatMessageSpec{
		ChatRef: v1beta1.ChatReference{Name: chat}, Role: v1beta1.RoleTool, Parts: parts,
	}}
}

// Decision is a person's decision about a call that waits for approval.
func Decision(namespace, chat, name string, spec v1beta1.ToolApprovalSpec) *v1beta1.ToolApproval {
	spec.ChatRef = v1beta1.ChatReference{Name: chat}
	return &v1beta1.ToolApproval{ObjectMeta: objectMeta(namespace, name, chat+"-"), Spec: spec}
}

// Request is a merge patch of a chat that asks for something once. Each token is one request.
func Request(kind v1beta1.RequestKind, token string) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]string{kind.Annotation(): token}}}
}

// Promotion is a merge patch of a message that makes it interrupt the running turn and be next.
func Promotion() map[string]any {
	return map[string]any{"spec": map[string]any{"whenBusy": v1beta1.WhenBusyInterrupt}}
}

// HoldFor is for how long an editor holds a message, and HoldAgain how often it does so: a message is released soon
// after its editor has disappeared.
const (
	HoldFor   = 5 * time.Minute
	HoldAgain = 2 * time.Minute
)

// Hold is a merge patch of the message that holds it from now on, while someone edits it. No later message of its name
// is changed. The nanoseconds of the time tell the holds of two editors apart.
func Hold(m *v1beta1.ChatMessage, now time.Time) map[string]any {
	return map[string]any{"metadata": map[string]any{"uid": m.UID,
		"annotations": map[string]any{v1beta1.AnnotationHoldUntil: now.Add(HoldFor).UTC().Format(time.RFC3339Nano)}}}
}

// Release is a JSON patch of the message that ends the hold until that time. It fails if there is another one.
func Release(m *v1beta1.ChatMessage, until string) []map[string]any {
	at := "/metadata/annotations/" + strings.ReplaceAll(v1beta1.AnnotationHoldUntil, "/", "~1")
	return []map[string]any{{"op": "test", "path": "/metadata/uid", "value": m.UID},
		{"op": "test", "path": at, "value": until}, {"op": "remove", "path": at}}
}

func objectMeta(namespace, name, prefix string) metav1.ObjectMeta {
	if name != "" {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	return metav1.ObjectMeta{Namespace: namespace, GenerateName: prefix}
}
