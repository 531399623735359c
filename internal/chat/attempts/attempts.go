// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attempts is what Chats and ChatMessages say of attempts: which one is under way, and which message answers
// it. It is the one place that compares their fences.
package attempts

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/chat/history"
)

// ToolsTime is how long an attempt at calls of tools may take: 5 hours, one more than a call may wait for a command.
const ToolsTime = 5 * time.Hour

// Of is the fence of the attempt that the status says is under way. Without one its number is 0, which no attempt has.
func Of(uid types.UID, st *v1beta1.ChatStatus) fence.Fence {
	f := fence.Fence{ChatUID: string(uid), HistoryVersion: st.History.Version}
	if st.Generation != nil {
		f.Attempt = st.Generation.Attempt
	}
	return f
}

// Answered is the fence of the attempt that a message answers; the zero Fence for a message that was not generated.
func Answered(m *v1beta1.ChatMessage) fence.Fence {
	g := m.Spec.Generation
	if g == nil {
		return fence.Fence{}
	}
	return fence.Fence{ChatUID: g.ChatUID, HistoryVersion: g.HistoryVersion, Attempt: g.Attempt}
}

// AnswersCurrentAttempt reports whether the message, which may be nil, is the result of the attempt under way: it has
// its name and shows its fence, the pod that has the attempt gave it, to what was asked of it, it follows on the head
// of the history and says what it follows, and it has what its outcome needs.
func AnswersCurrentAttempt(chat *v1beta1.Chat, st *v1beta1.ChatStatus, m *v1beta1.ChatMessage) bool {
	if m == nil || m.Spec.Generation == nil || st.Generation == nil {
		return false
	}
	under, g := Of(chat.UID, st), m.Spec.Generation
	return Answered(m) == under && m.Name == under.ResultName(chat.Name) &&
		g.Pod == st.Generation.Pod && g.Action == st.Generation.Action && m.Spec.Parent == st.History.Head &&
		history.Records(m, st.Internal.Tail) && isWhole(g)
}

// isWhole reports whether a failure says why, and a summary what it stands for. The policy parley-generated-messages
// refuses what is not; where somebody has lifted it, a pass would fail at such a message again and again.
func isWhole(g *v1beta1.MessageGeneration) bool {
	summarizes := g.Action == v1beta1.ActionCompact && g.Outcome == v1beta1.OutcomeCompleted
	return (g.Outcome != v1beta1.OutcomeFailed || g.Error != nil) && (!summarizes || g.Compaction != nil)
}

// NameConflict reports whether a message that is no result has the name of the result of the attempt under way, so that
// there can be none. The leftover of a deleted chat of the same name is collected soon, and the pod waits for that.
func NameConflict(chat *v1beta1.Chat, st *v1beta1.ChatStatus, m *v1beta1.ChatMessage) bool {
	if m == nil || st.Generation == nil || m.Name != Of(chat.UID, st).ResultName(chat.Name) ||
		AnswersCurrentAttempt(chat, st, m) {
		return false
	}
	return m.Spec.Generation == nil || m.Spec.Generation.ChatUID == string(chat.UID)
}
