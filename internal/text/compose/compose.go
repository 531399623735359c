// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compose makes the objects and patches that kubectl chat and the gateway send to change a chat. The API server
// validates them.
package compose

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

// Message is a User message to a chat. If the name is empty, the API server generates one.
func Message(namespace, chat, name string, spec v1alpha1.ChatMessageSpec) *v1alpha1.ChatMessage {
	spec.ChatRef, spec.Role = v1alpha1.ChatReference{Name: chat}, v1alpha1.RoleUser
	return &v1alpha1.ChatMessage{ObjectMeta: objectMeta(namespace, name, chat+"-message-"), Spec: spec}
}

// Results is a Tool message with the results of calls that wait for a client.
func Results(namespace, chat, name string, results []v1alpha1.ToolResult) *v1alpha1.ChatMessage {
	parts := make([]v1alpha1.MessagePart, 0, len(results))
	for i := range results {
		parts = append(parts, v1alpha1.MessagePart{Type: v1alpha1.PartToolResult, ToolResult: &results[i]})
	}
	return &v1alpha1.ChatMessage{ObjectMeta: objectMeta(namespace, name, chat+"-results-"), Spec: v1alpha1.ChatMessageSpec{
		ChatRef: v1alpha1.ChatReference{Name: chat}, Role: v1alpha1.RoleTool, Parts: parts,
	}}
}

// Decision is a person's decision about a call that waits for approval.
func Decision(namespace, chat, name string, spec v1alpha1.ToolApprovalSpec) *v1alpha1.ToolApproval {
	spec.ChatRef = v1alpha1.ChatReference{Name: chat}
	return &v1alpha1.ToolApproval{ObjectMeta: objectMeta(namespace, name, chat+"-"), Spec: spec}
}

// Request is a merge patch of a chat that asks for something once. Each token is one request.
func Request(kind v1alpha1.RequestKind, token string) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]string{kind.Annotation(): token}}}
}

// Promotion is a merge patch of a message that makes it interrupt the running turn and be next.
func Promotion() map[string]any {
	return map[string]any{"spec": map[string]any{"whenBusy": v1alpha1.WhenBusyInterrupt}}
}

func objectMeta(namespace, name, prefix string) metav1.ObjectMeta {
	if name != "" {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	return metav1.ObjectMeta{Namespace: namespace, GenerateName: prefix}
}
