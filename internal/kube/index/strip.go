// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/text/content"
)

// StripMessage leaves a message's text and other bulk out of the cache, all but a hash of what a person wrote, which
// tells of edits, and of an interrupted step or a client's results how many parts there are.
func StripMessage(o any) (any, error) {
	if message, ok := o.(*v1alpha1.ChatMessage); ok {
		message.ManagedFields = nil
		hash := ""
		if message.Spec.Generation == nil {
			hash = content.Of(message)
		}
		message.Annotations = traceOnly(message.Annotations, hash)
		message.Labels = nil
		message.Spec.Content = ""
		message.Spec.Parts = withoutContent(message)
		message.Spec.History = lastOf(message.Spec.History)
		message.Spec.Follows = namesOf(message.Spec.Follows)
		if g := message.Spec.Generation; g != nil {
			message.OwnerReferences = nil // It names its chat itself.
			g.Warnings = nil
			for i := range g.Agents { // How many there are tells that there is something to do.
				g.Agents[i] = v1alpha1.AgentChange{Key: g.Agents[i].Key}
			}
			if g.MCP != nil { // What is pinned is for generation pods.
				g.MCP.Pinned, g.MCP.Changed = nil, nil
			}
			for i := range g.Questions {
				g.Questions[i] = v1alpha1.ToolQuestion{ID: g.Questions[i].ID}
			}
		}
	}
	return o, nil
}

// namesOf leaves the names and versions of what a generated message follows. The rest is needed where a status is late,
// and read from the API server then: for each turn it would take as much as a message.
func namesOf(follows []v1alpha1.CommittedMessage) (names []v1alpha1.CommittedMessage) {
	for i := range follows {
		names = append(names, history.Named(&follows[i], i == len(follows)-1))
	}
	return names
}

// traceOnly keeps the annotation that says which trace a message belongs to, and the hash if there is one.
func traceOnly(annotations map[string]string, hash string) map[string]string {
	if hash == "" {
		return nil
	}
	kept := map[string]string{content.HashKey: hash}
	if parent := annotations[v1alpha1.AnnotationTraceparent]; parent != "" && len(parent) <= maxTraceparent {
		kept[v1alpha1.AnnotationTraceparent] = parent
	}
	return kept
}

// maxTraceparent is the length of a traceparent of version 00; a longer one is none that counts.
const maxTraceparent = 55

// annotationsOf are the annotations of a chat that the cache keeps: those that ask for something, the one that says
// which trace the prompt belongs to, and, until the prompt is a message, its author.
func annotationsOf(chat *v1alpha1.Chat) map[string]string {
	keys := []string{v1alpha1.AnnotationTraceparent}
	for _, kind := range v1alpha1.RequestKinds() {
		keys = append(keys, kind.Annotation())
	}
	if chat.Spec.Prompt != "" && chat.Status.History.Version == 0 {
		keys = append(keys, v1alpha1.AnnotationCreatedBy)
	}
	var kept map[string]string
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

// StripChat leaves a chat's prompts and its author out of the cache, once the first message exists. That there is a
// system prompt, or a reference to texts, can still be seen.
func StripChat(o any) (any, error) {
	if chat, ok := o.(*v1alpha1.Chat); ok {
		chat.ManagedFields = nil
		chat.Annotations = annotationsOf(chat)
		stripSettings(&chat.Spec.ChatSettings)
		if chat.Status.History.Version > 0 {
			chat.Spec.Prompt = ""
		}
	}
	return o, nil
}

// StripToSlot leaves of a chat what says whether it generates, and since when it waits for that. One that is being
// deleted does neither, whatever its status says for as long as a finalizer keeps it.
func StripToSlot(o any) (any, error) {
	if chat, ok := o.(*v1alpha1.Chat); ok {
		left := &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: chat.Namespace, Name: chat.Name, UID: chat.UID,
			ResourceVersion: chat.ResourceVersion}}
		if chat.Spec.ParentRef != nil {
			left.Spec.ParentRef = &v1alpha1.ChatReference{}
		}
		if chat.DeletionTimestamp != nil {
			return left, nil
		}
		if chat.Status.Generation != nil {
			left.Status.Generation = &v1alpha1.GenerationStatus{}
		}
		left.Status.WaitingSince = chat.Status.WaitingSince
		return left, nil
	}
	return o, nil
}

// StripClass leaves the prompts of a class out of the cache.
func StripClass(o any) (any, error) {
	if class, ok := o.(*v1alpha1.ChatClass); ok {
		class.ManagedFields, class.Annotations = nil, nil
		if class.Spec.Preamble != "" {
			class.Spec.Preamble = "…"
		}
		if class.Spec.NamespacePreamble != "" { // Which class has one is for the manager to know.
			class.Spec.NamespacePreamble = "…"
		}
		stripSettings(&class.Spec.Defaults)
	}
	return o, nil
}

func stripSettings(s *v1alpha1.ChatSettings) {
	if s.SystemPrompt != "" {
		s.SystemPrompt = "…"
	}
	if len(s.InstructionsFrom) > 0 {
		s.InstructionsFrom = []v1alpha1.InstructionsSource{{}}
	}
	if len(s.SkillsFrom) > 0 {
		s.SkillsFrom = []v1alpha1.SkillSource{{}}
	}
}

// StripOther leaves out of the cache who manages the fields of an object, and of a Sandbox what it is made from.
func StripOther(o any) (any, error) {
	if object, ok := o.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	if sandbox, ok := o.(*sandboxes.Sandbox); ok {
		sandbox.Spec = sandboxes.SandboxSpec{OperatingMode: sandbox.Spec.OperatingMode}
	}
	return o, nil
}

// lastOf keeps of a history who spoke last: that says whether somebody has to answer.
func lastOf(history []v1alpha1.PriorMessage) []v1alpha1.PriorMessage {
	if len(history) == 0 {
		return nil
	}
	return []v1alpha1.PriorMessage{{Role: history[len(history)-1].Role}}
}

// withoutContent is the parts of an interrupted step, which may be none,
// and of a client's results, without what they say.
func withoutContent(m *v1alpha1.ChatMessage) []v1alpha1.MessagePart {
	g := m.Spec.Generation
	if g == nil && m.Spec.Role != v1alpha1.RoleTool || g != nil && g.Outcome != v1alpha1.OutcomeInterrupted {
		return nil
	}
	parts := make([]v1alpha1.MessagePart, len(m.Spec.Parts))
	for i := range parts {
		parts[i].Type = m.Spec.Parts[i].Type
	}
	return parts
}
