// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agents makes the objects that carry out what a model has decided about sub-chats of its chat. It is pure:
// each object follows from the chat and the decision alone, its name included, so that creating it again is harmless.
package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
)

// maxChatName is the most characters of the name of a chat.
const maxChatName = 200

// Name is that of the chat which the call with the key starts: as the chat that calls is called, and something that no
// other call has.
func Name(chat, key string) string {
	suffix := "-" + short(key)
	return strings.TrimRight(clip.Bytes(chat, maxChatName-len(suffix)), "-.") + suffix
}

func short(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:5])
}

// Token of the request with which the call with the key interrupts a chat.
func Token(key string) string { return "agent-" + short(key) }

// Spawned is the chat that a chat starts: below it, of its class, with what it says itself, but for what only the chat
// at the top has.
func Spawned(parent *v1beta1.Chat, change *v1beta1.AgentChange) *v1beta1.Chat {
	spec := parent.Spec.DeepCopy()
	child := &v1beta1.Chat{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: parent.Namespace, Name: change.Chat,
			Annotations: map[string]string{v1beta1.AnnotationSpawnedBy: change.Key},
		},
		Spec: v1beta1.ChatSpec{
			Prompt: change.Spawn.Prompt, Title: change.Spawn.Title, ChatClassName: spec.ChatClassName,
			ChatSettings: spec.ChatSettings, ParentRef: &v1beta1.ChatReference{Name: parent.Name},
		},
	}
	s := &child.Spec.ChatSettings
	s.Workspace, s.Advisor, s.SubAgents, s.Retention = nil, nil, nil, nil
	if change.Spawn.ModelConfigRef != nil {
		s.ModelConfigRef = change.Spawn.ModelConfigRef
	}
	if change.Spawn.ReasoningEffort != "" {
		s.ReasoningEffort = change.Spawn.ReasoningEffort
	}
	if s.Tools != nil {
		withoutClient(s.Tools)
	}
	// The mode is no setting: no class can take it away.
	if change.Spawn.Type == v1beta1.AgentExplore || spec.Mode == v1beta1.ModeExplore {
		child.Spec.Mode = v1beta1.ModeExplore
	}
	return child
}

// withoutClient takes away the tools of a client, which no client runs for a sub-chat, and what ends turns, which is
// about the turns of the chat above. A name that no tool has cannot be allowed.
func withoutClient(t *v1beta1.ChatTools) {
	own := func(p v1beta1.ToolPattern) bool {
		return slices.ContainsFunc(t.Client, func(c v1beta1.ClientTool) bool { return c.Name == string(p) })
	}
	if allowed := len(t.Allow); allowed > 0 {
		if t.Allow = slices.DeleteFunc(t.Allow, own); len(t.Allow) == 0 {
			t.Allow, t.Deny = nil, []v1beta1.ToolPattern{"*"} // An empty list would allow all.
		}
	}
	t.Client, t.StopAfter = nil, nil
}

// Said is the message that a chat sends to one below it.
func Said(parent *v1beta1.Chat, change *v1beta1.AgentChange) *v1beta1.ChatMessage {
	m := &v1beta1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: parent.Namespace, Name: change.Chat + "-agent-" + short(change.Key),
			Annotations: map[string]string{v1beta1.AnnotationSpawnedBy: change.Key},
		},
		Spec: v1beta1.ChatMessageSpec{
			ChatRef: v1beta1.ChatReference{Name: change.Chat}, Role: v1beta1.RoleUser, Content: change.Message.Content,
		},
	}
	if change.Message.Interrupts {
		m.Spec.WhenBusy = v1beta1.WhenBusyInterrupt
	}
	return m
}
