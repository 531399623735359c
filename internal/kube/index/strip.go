// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/text/content"
)

// StripMessage removes a message's text and other bulk. It keeps a hash of what a person wrote, which shows edits, the
// digests of its stored files, and the number of parts of an interrupted step or a client's results.
func StripMessage(o any) (any, error) {
	return strip(o, func(message *v1beta1.ChatMessage) {
		message.ManagedFields = nil
		hash := ""
		if message.Spec.Generation == nil {
			hash = content.Of(message)
		}
		message.Annotations = messageAnnotations(message.Annotations, hash, content.StoredFiles(message))
		message.Labels = nil
		message.Spec.Content = ""
		message.Spec.Parts = withoutContent(message)
		message.Spec.History = lastOf(message.Spec.History)
		message.Spec.Follows = namesOf(message.Spec.Follows)
		if message.Spec.Generation != nil {
			message.OwnerReferences = nil // It names its chat itself.
			stripGeneration(message.Spec.Generation)
		}
	})
}

// stripGeneration keeps the numbers of agents and questions: they show that there is work.
func stripGeneration(g *v1beta1.MessageGeneration) {
	g.Warnings = nil
	for i := range g.Agents {
		g.Agents[i] = v1beta1.AgentChange{Key: g.Agents[i].Key}
	}
	if g.MCP != nil { // Only generation pods need the pinned tools.
		g.MCP.Pinned, g.MCP.Changed = nil, nil
	}
	for i := range g.Questions {
		g.Questions[i] = v1beta1.ToolQuestion{ID: g.Questions[i].ID}
	}
}

// strip removes fields of an object of one kind from the cache. Other objects stay as they are.
func strip[T any](o any, from func(*T)) (any, error) {
	if object, ok := o.(*T); ok {
		from(object)
	}
	return o, nil
}

// namesOf keeps the names and versions of what a generated message follows. If a status is late, the rest is read from
// the API server: for each turn it would take as much memory as a message.
func namesOf(follows []v1beta1.CommittedMessage) (names []v1beta1.CommittedMessage) {
	for i := range follows {
		names = append(names, history.Named(&follows[i], i == len(follows)-1))
	}
	return names
}

// messageAnnotations keeps the trace that a message belongs to, the hash and the digests of files if there are any,
// until when the message is held, and whether it was restored from a backup.
func messageAnnotations(annotations map[string]string, hash string, files []string) map[string]string {
	if hash == "" {
		return nil
	}
	kept := map[string]string{content.HashKey: hash}
	if len(files) > 0 {
		kept[content.FilesKey] = strings.Join(files, ",")
	}
	if parent := annotations[v1beta1.AnnotationTraceparent]; parent != "" && len(parent) <= maxTraceparent {
		kept[v1beta1.AnnotationTraceparent] = parent
	}
	if until := annotations[v1beta1.AnnotationHoldUntil]; until != "" && len(until) <= len(time.RFC3339Nano) {
		kept[v1beta1.AnnotationHoldUntil] = until
	}
	if from := annotations[v1beta1.AnnotationRestoredFrom]; from != "" {
		kept[v1beta1.AnnotationRestoredFrom] = from
	}
	return kept
}

// maxTraceparent is the length of a traceparent of version 00; a longer one is ignored.
const maxTraceparent = 55

// annotationsOf are the annotations of a chat that the cache keeps: requests, the trace of the prompt, a restore that
// is not finished, and the author of a prompt that is not a message yet.
func annotationsOf(chat *v1beta1.Chat) (kept map[string]string) {
	keys := []string{v1beta1.AnnotationTraceparent, v1beta1.AnnotationRestoring}
	for _, kind := range v1beta1.RequestKinds() {
		keys = append(keys, kind.Annotation())
	}
	if chat.Spec.Prompt != "" && chat.Status.History.Version == 0 {
		keys = append(keys, v1beta1.AnnotationCreatedBy)
	}
	for _, key := range keys {
		if value, ok := chat.Annotations[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

// StripChat removes a chat's prompts, and its author once the first message exists. It still shows that there is a
// system prompt, or a reference to texts.
func StripChat(o any) (any, error) {
	return strip(o, func(chat *v1beta1.Chat) {
		chat.ManagedFields = nil
		chat.Annotations = annotationsOf(chat)
		stripSettings(&chat.Spec.ChatSettings)
		if chat.Status.History.Version > 0 {
			chat.Spec.Prompt = ""
		}
	})
}

// StripToSlot keeps of a chat whether it generates, and since when it waits for that. A chat that is being deleted does
// neither, whatever its status says while a finalizer keeps it.
func StripToSlot(o any) (any, error) {
	return strip(o, func(chat *v1beta1.Chat) {
		kept := v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: chat.Namespace, Name: chat.Name, UID: chat.UID,
			ResourceVersion: chat.ResourceVersion}}
		if chat.Spec.ParentRef != nil {
			kept.Spec.ParentRef = &v1beta1.ChatReference{}
		}
		if chat.DeletionTimestamp == nil {
			kept.Status.WaitingSince = chat.Status.WaitingSince
			if chat.Status.Generation != nil {
				kept.Status.Generation = &v1beta1.GenerationStatus{}
			}
		}
		*chat = kept
	})
}

// StripClass removes the prompts of a class. It still shows which class has one.
func StripClass(o any) (any, error) {
	return strip(o, func(class *v1beta1.ChatClass) {
		class.ManagedFields, class.Annotations = nil, nil
		stripText(&class.Spec.Preamble)
		stripText(&class.Spec.NamespacePreamble)
		stripSettings(&class.Spec.Defaults)
	})
}

func stripText(text *string) {
	if *text != "" {
		*text = "…"
	}
}

func stripSettings(s *v1beta1.ChatSettings) {
	stripText(&s.SystemPrompt)
	if len(s.InstructionsFrom) > 0 {
		s.InstructionsFrom = []v1beta1.InstructionsSource{{}}
	}
	if len(s.SkillsFrom) > 0 {
		s.SkillsFrom = []v1beta1.SkillSource{{}}
	}
}

// StripOther removes the managers of an object's fields, and the template of a Sandbox.
func StripOther(o any) (any, error) {
	if object, ok := o.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	if sandbox, ok := o.(*sandboxes.Sandbox); ok {
		sandbox.Spec = sandboxes.SandboxSpec{OperatingMode: sandbox.Spec.OperatingMode}
	}
	return o, nil
}

// lastOf keeps the last role of a history: it decides whether the chat has to answer.
func lastOf(history []v1beta1.PriorMessage) []v1beta1.PriorMessage {
	if len(history) == 0 {
		return nil
	}
	return []v1beta1.PriorMessage{{Role: history[len(history)-1].Role}}
}

// withoutContent are the types of the parts of an interrupted step, which may be none, and of a client's results.
func withoutContent(m *v1beta1.ChatMessage) []v1beta1.MessagePart {
	g := m.Spec.Generation
	if g == nil && m.Spec.Role != v1beta1.RoleTool || g != nil && g.Outcome != v1beta1.OutcomeInterrupted {
		return nil
	}
	parts := make([]v1beta1.MessagePart, len(m.Spec.Parts))
	for i := range parts {
		parts[i].Type = m.Spec.Parts[i].Type
	}
	return parts
}
