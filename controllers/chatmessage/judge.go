// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/kube/index"
)

// verdict says whether a message stays.
type verdict int

const (
	// keep the message.
	keep verdict = iota
	// removeOrphan: the message belongs to a chat that exists no longer.
	removeOrphan
	// removeUseless: the message is a report that has been acted on, or never will be.
	removeUseless
	// removeLeftover: the message answers an attempt that was given up, unless it is part of the history after all.
	removeLeftover
)

// judge decides from the cache what may have to go. Before a step with content goes,
// remove looks at the history itself.
func judge(s *scope) verdict {
	m, g := s.message, s.message.Spec.Generation
	switch uid := history.ChatUID(m); {
	case uid != "" && (s.chat == nil || string(s.chat.UID) != uid):
		return removeOrphan
	case g == nil || s.chat == nil || !past(s.chat, g):
		return keep
	case index.IsReport(m):
		return removeUseless
	case s.followed:
		return keep
	}
	return removeLeftover
}

// atRest reports whether there is nothing to do for the message, and nothing to say.
func atRest(s *scope) bool {
	return judge(s) == keep && (s.message.Spec.Generation != nil || settled(s))
}

// past reports whether the chat has moved on from the fence.
func past(chat *v1beta1.Chat, g *v1beta1.MessageGeneration) bool {
	switch version := chat.Status.History.Version; {
	case g.HistoryVersion != version:
		return g.HistoryVersion < version
	case g.Action == v1beta1.ActionSummarizeTurn:
		// A summary that was taken, or that is no longer awaited, is late.
		return chat.Status.Turn == nil || chat.Status.Turn.SummarySource != v1beta1.TurnSummaryFromState
	case chat.Status.Generation == nil:
		return true
	default:
		return g.Attempt < chat.Status.Generation.Attempt
	}
}
