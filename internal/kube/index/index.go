// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package index names the indexes of the manager's cache, and says what the cache leaves out: message text. The manager
// decides from names, fences and counts, so no content of a conversation is ever in its memory.
package index

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
)

const (
	// ChatsByPod finds the chats whose attempt a pod has.
	ChatsByPod = "status.generation.pod"
	// ChatsByParent finds the sub-chats of a chat.
	ChatsByParent = "spec.parentRef.name"
	// ChatsWithSecrets finds the chats whose MCP servers need Secrets, all but archived ones.
	ChatsWithSecrets = "mcpSecrets"
	// WithSecrets is the key of all of these.
	WithSecrets = "true"
	// UnsettledByChat finds the messages of people in a chat whose status has not said its last word.
	UnsettledByChat = "unsettledByChat"
	// MessagesByChat finds all messages of a chat.
	MessagesByChat = "spec.chatRef.name"
	// ReportsByChat finds the messages of a chat that are part of no history, which go once they have been acted on.
	ReportsByChat = "reportsByChat"
	// MessagesByParent finds the messages that follow a message in the history, up to the next generated one.
	MessagesByParent = "parent"

	// OpenApprovalsByChat finds the ToolApprovals of a chat that have not been acted on.
	OpenApprovalsByChat = "openApprovalsByChat"

	// WorkspacesByPod finds the workspaces whose podRef names a pod.
	WorkspacesByPod = "spec.source.podRef.name"

	// AnyChat as the key of UnsettledByChat finds the unsettled messages of all chats.
	AnyChat = "*"
)

// Register adds every index to the cache.
func Register(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		object client.Object
		field  string
		keys   client.IndexerFunc
	}{
		{&v1alpha1.Chat{}, ChatsByPod, chatsByPod},
		{&v1alpha1.Chat{}, ChatsByParent, chatsByParent},
		{&v1alpha1.Chat{}, ChatsWithSecrets, chatsWithSecrets},
		{&v1alpha1.ChatMessage{}, UnsettledByChat, unsettledByChat},
		{&v1alpha1.ChatMessage{}, MessagesByChat, messagesByChat},
		{&v1alpha1.ChatMessage{}, MessagesByParent, messagesByParent},
		{&v1alpha1.ChatMessage{}, ReportsByChat, reportsByChat},
		{&v1alpha1.ToolApproval{}, OpenApprovalsByChat, openApprovalsByChat},
		{&v1alpha1.Workspace{}, WorkspacesByPod, workspacesByPod},
	} {
		if err := indexer.IndexField(ctx, index.object, index.field, index.keys); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", index.object, index.field, err)
		}
	}
	return nil
}

func chatsWithSecrets(o client.Object) []string {
	chat, ok := o.(*v1alpha1.Chat)
	needs := func(s v1alpha1.MCPServer) bool { return len(s.HeadersFrom) > 0 }
	if !ok || chat.Status.Archived || !slices.ContainsFunc(chat.Spec.MCPServers, needs) {
		return nil
	}
	return []string{WithSecrets}
}

func chatsByPod(o client.Object) []string {
	chat, ok := o.(*v1alpha1.Chat)
	if !ok || chat.Status.Generation == nil {
		return nil
	}
	return []string{chat.Status.Generation.Pod}
}

func chatsByParent(o client.Object) []string {
	chat, ok := o.(*v1alpha1.Chat)
	if !ok || chat.Spec.ParentRef == nil {
		return nil
	}
	return []string{chat.Spec.ParentRef.Name}
}

func unsettledByChat(o client.Object) []string {
	message, ok := o.(*v1alpha1.ChatMessage)
	if !ok || message.Spec.Generation != nil || conditions.MessageSettled(message) {
		return nil
	}
	return []string{message.Spec.ChatRef.Name, AnyChat}
}

// Unsettled reports whether it is a message of a person whose status has not said its last word.
func Unsettled(o client.Object) bool { return unsettledByChat(o) != nil }

func messagesByChat(o client.Object) []string {
	message, ok := o.(*v1alpha1.ChatMessage)
	if !ok {
		return nil
	}
	return []string{message.Spec.ChatRef.Name}
}

func messagesByParent(o client.Object) []string {
	message, ok := o.(*v1alpha1.ChatMessage)
	if !ok {
		return nil
	}
	return FollowedBy(message)
}

// FollowedBy names the messages that a message follows, as far as it says so itself and the cache keeps that.
func FollowedBy(m *v1alpha1.ChatMessage) (followed []string) {
	for _, parent := range []string{m.Spec.Parent, m.Status.Parent} {
		if parent != "" {
			followed = append(followed, parent)
		}
	}
	for i := range m.Spec.Follows {
		if name := m.Spec.Follows[i].Message; name != "" && !slices.Contains(followed, name) {
			followed = append(followed, name)
		}
	}
	return followed
}

func reportsByChat(o client.Object) []string {
	message, ok := o.(*v1alpha1.ChatMessage)
	if !ok || !IsReport(message) {
		return nil
	}
	return []string{message.Spec.ChatRef.Name}
}

// IsReport reports whether a message is part of no history: it reports that an attempt yielded nothing, or what a model
// says of a turn.
func IsReport(m *v1alpha1.ChatMessage) bool {
	g := m.Spec.Generation
	switch {
	case g != nil && g.Action == v1alpha1.ActionSummarizeTurn:
		return true
	case g == nil || g.Outcome == v1alpha1.OutcomeCompleted:
		return false
	case g.Outcome == v1alpha1.OutcomeInterrupted:
		return len(m.Spec.Parts) == 0
	}
	return true
}

func openApprovalsByChat(o client.Object) []string {
	approval, ok := o.(*v1alpha1.ToolApproval)
	if !ok || approval.Status.ObservedGeneration == approval.Generation {
		return nil
	}
	return []string{approval.Spec.ChatRef.Name}
}

func workspacesByPod(o client.Object) []string {
	workspace, ok := o.(*v1alpha1.Workspace)
	if !ok || workspace.Spec.Source.PodRef == nil {
		return nil
	}
	return []string{workspace.Spec.Source.PodRef.Name}
}
