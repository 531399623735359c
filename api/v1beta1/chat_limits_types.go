// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"
)

const (
	// DefaultMaxSteps is the number of Assistant messages after which a turn ends, unless limits.maxSteps says otherwise.
	DefaultMaxSteps = 1200
	// DefaultMaxQueue is the number of messages that may wait in a chat's queue, unless limits.maxQueue says otherwise.
	DefaultMaxQueue = 20
	// RoomToCutIn is by how many messages those that cut in may exceed limits.maxQueue: someone who says "Stop" is read
	// also where the queue is full.
	RoomToCutIn = 20
	// DefaultMaxSubChats is the number of chats below one that has no parent, unless limits.maxSubChats says otherwise.
	DefaultMaxSubChats = 20
	// DefaultMaxDepth is how deep sub-chats may be nested, unless limits.maxDepth says otherwise.
	DefaultMaxDepth = 1
	// MaxFamilyDepth is the greatest limits.maxDepth.
	MaxFamilyDepth = 8
	// DefaultActionDeadline is how long tool calls wait if one of them is a client's, unless limits.actionDeadlineSeconds
	// says otherwise.
	DefaultActionDeadline = 5 * time.Minute
	// DefaultApprovalDeadline is how long tool calls wait that people alone decide about: they may be away for a weekend.
	DefaultApprovalDeadline = 7 * 24 * time.Hour
	// MaxPendingInput is the most bytes of a call's arguments that status.requiresAction shows. A call with more cannot be
	// approved: it is refused.
	MaxPendingInput = 16384
	// MaxLastReplyRunes bounds Chat.status.lastReply, so that "kubectl get chats" stays within 120 columns.
	MaxLastReplyRunes = 28
	// MaxHandledRequests is the number of kinds of requests that annotations make.
	MaxHandledRequests = 4
)

// ChatLimits bounds what a chat may do.
type ChatLimits struct {
	// maxSteps is the number of Assistant messages after which a turn ends. Default 1200.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MaxSteps *int32 `json:"maxSteps,omitempty"`

	// maxQueue is the number of messages that may wait while a turn is under way; one more is Rejected. Messages that
	// interrupt (whenBusy: Interrupt) may exceed it by 20. Default 20.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxQueue *int32 `json:"maxQueue,omitempty"`

	// maxSubChats is the number of chats below this one, at all depths, that are not archived; one too many does not
	// begin. It counts where a chat has no parent. Default 20.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MaxSubChats *int32 `json:"maxSubChats,omitempty"`

	// maxDepth is how deep sub-chats may be nested: 1 allows sub-chats that have none of their own. It counts where a chat
	// has no parent. Default 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=8
	// +optional
	MaxDepth *int32 `json:"maxDepth,omitempty"`

	// actionDeadlineSeconds is how long tool calls wait for a client or for people before they are cancelled. Default: 300
	// if one of them is a client's, and a week if people alone decide about them.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	// +optional
	ActionDeadlineSeconds *int32 `json:"actionDeadlineSeconds,omitempty"`

	// budget is the most that the chat may cost together with the chats below it, deleted ones included. Once it is
	// reached, no model is called: turns wait with reason BudgetReached until it is raised. A call under way is finished,
	// so that a chat may cost somewhat more. Default: no limit.
	// +optional
	Budget *Budget `json:"budget,omitempty"`
}

// MaxStepsOrDefault is limits.maxSteps, or DefaultMaxSteps.
func (s *ChatSpec) MaxStepsOrDefault() int32 {
	if s.Limits == nil || s.Limits.MaxSteps == nil {
		return DefaultMaxSteps
	}
	return *s.Limits.MaxSteps
}

// MaxQueueOrDefault is limits.maxQueue, or DefaultMaxQueue.
func (s *ChatSpec) MaxQueueOrDefault() int32 {
	if s.Limits == nil || s.Limits.MaxQueue == nil {
		return DefaultMaxQueue
	}
	return *s.Limits.MaxQueue
}

// MaxSubChatsOrDefault is limits.maxSubChats, or DefaultMaxSubChats.
func (s *ChatSpec) MaxSubChatsOrDefault() int32 {
	if s.Limits == nil || s.Limits.MaxSubChats == nil {
		return DefaultMaxSubChats
	}
	return *s.Limits.MaxSubChats
}

// MaxDepthOrDefault is limits.maxDepth, or DefaultMaxDepth.
func (s *ChatSpec) MaxDepthOrDefault() int32 {
	if s.Limits == nil || s.Limits.MaxDepth == nil {
		return DefaultMaxDepth
	}
	return *s.Limits.MaxDepth
}
