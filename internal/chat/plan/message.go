// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/telemetry/traceparent"
	"parley.dev/parley/internal/text/content"
	"parley.dev/parley/internal/text/firstwords"
)

// MessageOf is what a decision has to know of a User message.
func MessageOf(m *v1beta1.ChatMessage) Message {
	facts := Message{
		Name: m.Name, UID: string(m.UID), ContentHash: content.Of(m),
		Interrupts: m.Spec.WhenBusy == v1beta1.WhenBusyInterrupt,
		LastRole:   m.Spec.LastRole(), Effort: m.Spec.ReasoningEffort, FirstWords: firstwords.Of(&m.Spec),
		Created: m.CreationTimestamp.Time, Traceparent: traceparentOf(m), HoldUntil: HoldOf(m),
	}
	if ref := m.Spec.ModelConfigRef; ref != nil {
		facts.ModelConfig = ref.Name
	}
	return facts
}

// CreatedOf is when the message was created. An edited one has not waited since then.
func CreatedOf(f *Facts, name string) (created time.Time) {
	for _, messages := range [][]Message{f.Open, f.Queued} {
		for i := range messages {
			if messages[i].Name == name {
				return messages[i].Created
			}
		}
	}
	return created
}

// traceparentOf is the trace context that an object names, if that is one.
func traceparentOf(m *v1beta1.ChatMessage) string {
	parent := m.Annotations[v1beta1.AnnotationTraceparent]
	if _, ok := traceparent.Parse(parent); !ok {
		return ""
	}
	return parent
}
