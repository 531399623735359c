// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package index has the indexes of the manager's cache, and removes message text from it. The manager decides from
// names, fences and counts, so no content of a conversation is ever in its memory.
package index

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
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
	// UnsettledByChat finds the messages of people in a chat whose status is not final.
	UnsettledByChat = "unsettledByChat"
	// MessagesByChat finds all messages of a chat.
	MessagesByChat = "spec.chatRef.name"
	// ReportsByChat finds the messages of a chat that are in no history, and are deleted after they have been acted on.
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
		{&v1beta1.Chat{}, ChatsByPod, keysOf(chatsByPod)},
		{&v1beta1.Chat{}, ChatsByParent, keysOf(chatsByParent)},
		{&v1beta1.Chat{}, ChatsWithSecrets, keysOf(chatsWithSecrets)},
		{&v1beta1.ChatMessage{}, UnsettledByChat, keysOf(unsettledByChat)},
		{&v1beta1.ChatMessage{}, MessagesByChat, keysOf(messagesByChat)},
		{&v1beta1.ChatMessage{}, MessagesByParent, keysOf(FollowedBy)},
		{&v1beta1.ChatMessage{}, ReportsByChat, keysOf(reportsByChat)},
		{&v1beta1.ToolApproval{}, OpenApprovalsByChat, keysOf(openApprovalsByChat)},
		{&v1beta1.Workspace{}, WorkspacesByPod, keysOf(workspacesByPod)},
	} {
		if err := indexer.IndexField(ctx, index.object, index.field, index.keys); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", index.object, index.field, err)
		}
	}
	return nil
}

// keysOf is an index of one kind.
func keysOf[T client.Object](keys func(T) []string) client.IndexerFunc {
	return func(o client.Object) []string {
		if object, ok := o.(T); ok {
			return keys(object)
		}
		return nil
	}
}

func chatsWithSecrets(chat *v1beta1.Chat) []string {
	needs := func(s v1beta1.MCPServer) bool { return len(s.HeadersFrom) > 0 }
	if chat.Status.Archived || !slices.ContainsFunc(chat.Spec.MCPServers, needs) {
		return nil
	}
	return []string{WithSecrets}
}

func chatsByPod(chat *v1beta1.Chat) []string {
	if chat.Status.Generation == nil {
		return nil
	}
	return []string{chat.Status.Generation.Pod}
}

func chatsByParent(chat *v1beta1.Chat) []string {
	if chat.Spec.ParentRef == nil {
		return nil
	}
	return []string{chat.Spec.ParentRef.Name}
}

func unsettledByChat(message *v1beta1.ChatMessage) []string {
	if message.Spec.Generation != nil || conditions.MessageSettled(message) {
		return nil
	}
	return []string{message.Spec.ChatRef.Name, AnyChat}
}

// Unsettled reports whether it is a message of a person whose status is not final.
func Unsettled(o client.Object) bool { return keysOf(unsettledByChat)(o) != nil }

func messagesByChat(message *v1beta1.ChatMessage) []string {
	return []string{message.Spec.ChatRef.Name}
}

// FollowedBy names the messages that a message follows, by the fields that the cache keeps.
func FollowedBy(m *v1beta1.ChatMessage) (followed []string) {
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

func reportsByChat(message *v1beta1.ChatMessage) []string {
	if !IsReport(message) {
		return nil
	}
	return []string{message.Spec.ChatRef.Name}
}

// IsReport reports whether a message is in no history: it reports that an attempt yielded nothing, or a model's summary
// of a turn.
func IsReport(m *v1beta1.ChatMessage) bool {
	g := m.Spec.Generation
	switch {
	case g == nil:
		return false
	case g.Action == v1beta1.ActionSummarizeTurn:
		return true
	case g.Outcome == v1beta1.OutcomeInterrupted:
		return len(m.Spec.Parts) == 0
	}
	return g.Outcome != v1beta1.OutcomeCompleted
}

func openApprovalsByChat(approval *v1beta1.ToolApproval) []string {
	if approval.Status.ObservedGeneration == approval.Generation {
		return nil
	}
	return []string{approval.Spec.ChatRef.Name}
}

func workspacesByPod(workspace *v1beta1.Workspace) []string {
	if workspace.Spec.Source.PodRef == nil {
		return nil
	}
	return []string{workspace.Spec.Source.PodRef.Name}
}
