// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatlist

import (
	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
)

// SummaryOf is what a list shows of a chat.
func SummaryOf(chat *v1alpha1.Chat) stream.Summary {
	s := stream.Summary{
		Name: chat.Name, UID: chat.UID, CreatedAt: chat.CreationTimestamp,
		Phase: chat.Status.Phase, Title: chat.Status.Title, LastReply: chat.Status.LastReply, Model: chat.Status.Model,
		Length: chat.Status.History.Length, Queued: len(chat.Status.Queue), Cost: chat.Status.Cost,
		Archived: chat.Status.Archived, Suspended: chat.Spec.Suspend, Root: chat.Status.Root,
	}
	if chat.Spec.ParentRef != nil {
		s.Parent = chat.Spec.ParentRef.Name
	}
	for i := range chat.Status.Conditions {
		if c := &chat.Status.Conditions[i]; c.Type == v1alpha1.ConditionReady {
			s.Ready, s.Reason, s.Message, s.Since = c.Status, c.Reason, c.Message, &c.LastTransitionTime
		}
	}
	if t := chat.Status.Turn; t != nil {
		s.Turn = &stream.Turn{Message: t.Message, StartedAt: t.StartedAt, Result: t.Result, Summary: t.Summary}
	}
	return s
}
