// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

// waitingCalls is a reply with calls that wait for a client or for approval.
func waitingCalls(kind v1alpha1.RequiredAction, ids ...string) reply {
	return func(m *v1alpha1.ChatMessage) {
		calls(ids...)(m)
		m.Spec.Generation.CallsRequiringAction = int32(len(ids))
		for i := range m.Spec.Parts {
			m.Spec.Parts[i].ToolCall.RequiresAction = kind
		}
	}
}

// brings creates a message with a client's result of a call.
func brings(name, id string) step {
	return func(ctx context.Context, w *world) error {
		m := &v1alpha1.ChatMessage{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
			Spec: v1alpha1.ChatMessageSpec{
				ChatRef: v1alpha1.ChatReference{Name: chatName}, Role: v1alpha1.RoleTool,
				Parts: []v1alpha1.MessagePart{{Type: v1alpha1.PartToolResult,
					ToolResult: &v1alpha1.ToolResult{ID: id, Output: "1"}}},
			},
		}
		if err := cluster.Client.Create(ctx, m); err != nil {
			return fmt.Errorf("creating message %s: %w", name, err)
		}
		return nil
	}
}

// decides creates a decision about a call.
func decides(name, id string, decision v1alpha1.ApprovalDecision) step {
	return func(ctx context.Context, w *world) error {
		a := &v1alpha1.ToolApproval{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
			Spec: v1alpha1.ToolApprovalSpec{ChatRef: v1alpha1.ChatReference{Name: chatName}, ToolCallID: id,
				Decision: decision},
		}
		if err := cluster.Client.Create(ctx, a); err != nil {
			return fmt.Errorf("creating approval %s: %w", name, err)
		}
		return nil
	}
}

// archives puts the chat away or takes it back.
func archives(archived bool) step {
	return changesChat(func(c *v1alpha1.Chat) { c.Spec.Archived = archived })
}
