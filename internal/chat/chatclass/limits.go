// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass

import (
	"cmp"
	"math"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
)

// boundLimits are limits that are no greater than the most there may be.
func boundLimits(own, most *v1beta1.ChatLimits) *v1beta1.ChatLimits {
	var l v1beta1.ChatLimits
	if own != nil {
		l = *own
	}
	return &v1beta1.ChatLimits{
		MaxSteps:    atMost(l.MaxSteps, most.MaxSteps, v1beta1.DefaultMaxSteps),
		MaxQueue:    atMost(l.MaxQueue, most.MaxQueue, v1beta1.DefaultMaxQueue),
		MaxSubChats: atMost(l.MaxSubChats, most.MaxSubChats, v1beta1.DefaultMaxSubChats),
		MaxDepth:    atMost(l.MaxDepth, most.MaxDepth, v1beta1.DefaultMaxDepth),
		ActionDeadlineSeconds: atMost(l.ActionDeadlineSeconds, most.ActionDeadlineSeconds,
			int32(v1beta1.DefaultActionDeadline/time.Second)),
		Budget: smallerBudget(l.Budget, most.Budget),
	}
}

// boundRetention is a retention that keeps chats no longer than the longest there may be, and archives them if it must.
func boundRetention(own, most *v1beta1.ChatRetention) *v1beta1.ChatRetention {
	if *most == (v1beta1.ChatRetention{}) {
		return own
	}
	var r v1beta1.ChatRetention
	if own != nil {
		r = *own
	}
	failed, mostFailed := cmp.Or(r.DeleteFailedAfterSeconds, r.DeleteAfterSeconds),
		cmp.Or(most.DeleteFailedAfterSeconds, most.DeleteAfterSeconds)
	bounded := &v1beta1.ChatRetention{
		DeleteAfterSeconds:       atMost(r.DeleteAfterSeconds, most.DeleteAfterSeconds, forGood),
		DeleteFailedAfterSeconds: atMost(failed, mostFailed, forGood),
		Archive:                  r.Archive,
	}
	if most.Archives() {
		bounded.Archive = most.Archive
	}
	if bounded.DeleteAfter(true) == bounded.DeleteAfter(false) {
		bounded.DeleteFailedAfterSeconds = nil
	}
	return bounded
}

// BoundActionDeadline is how long tool calls of a chat of the class wait, within the class's limit; nil: it has no
// class. The default depends on the calls, so that boundLimits cannot apply the limit to it.
func BoundActionDeadline(wait time.Duration, class *v1beta1.ChatClass) time.Duration {
	if class == nil || class.Spec.Restrictions == nil || class.Spec.Restrictions.Limits == nil {
		return wait
	}
	if most := class.Spec.Restrictions.Limits.ActionDeadlineSeconds; most != nil {
		return min(wait, time.Duration(*most)*time.Second)
	}
	return wait
}

// forGood is longer than any retention.
const forGood int32 = math.MaxInt32

// atMost is the value within its ceiling. Where no value is set, the default is one; a ceiling above it does
// not raise it.
func atMost[N int32 | int64](value, ceiling *N, otherwise N) *N {
	switch {
	case ceiling == nil:
		return value
	case value == nil && otherwise <= *ceiling:
		return nil
	case value == nil || *value > *ceiling:
		return ceiling
	}
	return value
}

// smallerBudget is the chat's budget if it is one in the currency of the ceiling, and no greater.
func smallerBudget(own, most *v1beta1.Budget) *v1beta1.Budget {
	if most == nil || own == nil {
		if own == nil {
			return most
		}
		return own
	}
	amount, valid := cost.Micros(own.Amount)
	if ceiling, ok := cost.Micros(most.Amount); own.Currency != most.Currency || !valid || ok && amount > ceiling {
		return most
	}
	return own
}
