// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
)

// settleRetention says since when the chat rests and when it expires. It expires in a pass that finds both said:
// people could see it, and the decision rests on nothing of this very pass.
func settleRetention(p *pass) { settleExpiry(p, idleSince(p)) }

// settleExpiry does so for a chat that rests since then; nil: it does not rest.
func settleExpiry(p *pass, since *metav1.Time) {
	st, before := p.status(), p.chat.Status.ExpiresAt
	st.IdleSince, st.ExpiresAt = since, nil
	at := expiresAt(p)
	if !at.IsZero() {
		st.ExpiresAt = new(metav1.NewTime(at))
	}
	settleArchive(p)
	if at.IsZero() {
		return
	}
	switch left := at.Sub(p.facts.Now); {
	case left > 0:
		p.plan.Again = Sooner(p.plan.Again, left)
	case before.Equal(st.ExpiresAt) && p.plan.Asks.Nothing():
		p.plan.Expires = true
	default:
		p.plan.Again = time.Nanosecond
	}
}

// settleArchive records why the chat that is to be deleted is kept. What another manager recorded stays until this one
// has tried. Nothing of an archive stays of a chat that is no longer to be deleted: what people remove from the chat
// would remain in it.
func settleArchive(p *pass) {
	st, failed := p.status(), p.facts.ArchiveFailed
	due := st.ExpiresAt != nil && !st.ExpiresAt.After(p.facts.Now) && p.chat.Spec.Retention.Archives()
	tried := meta.FindStatusCondition(st.Conditions, v1beta1.ConditionArchiveUnavailable) != nil
	p.plan.DiscardsArchive = !due && (tried || p.facts.ArchiveBegun)
	if !due || failed.Reason != "" {
		if !due {
			failed = ArchiveFailure{}
		}
		conditions.MarkArchive(st, failed.Reason, failed.Message, p.facts.Now)
	}
	if c := meta.FindStatusCondition(st.Conditions, v1beta1.ConditionArchiveUnavailable); c != nil {
		st.Wait = &v1beta1.ChatWait{For: v1beta1.WaitForArchiveStore, Reason: c.Reason, Message: c.Message,
			Since: c.LastTransitionTime}
	}
}

// settleForkRetention does so for a fork without its history. It rests if it is archived, or if something other than
// time keeps it from its history: its source may never exist. While neither is known, it stays as it was.
func settleForkRetention(p *pass, problem *conditions.ForkProblem) {
	switch {
	case p.status().Archived, problem != nil && problem.NeedsPerson():
		since := p.chat.Status.IdleSince
		if since == nil {
			since = new(metav1.NewTime(p.facts.Now.Truncate(time.Second)))
		}
		settleExpiry(p, since)
	case problem != nil:
		settleExpiry(p, nil)
	}
}

// idleSince is since when the chat has had nothing to do; nil while it has. Whatever the state machine did to it
// counts as something.
func idleSince(p *pass) *metav1.Time {
	since := p.chat.Status.IdleSince
	switch {
	case !isIdle(p):
		return nil
	case since == nil || len(p.plan.Transitions) > 0:
		return new(metav1.NewTime(p.facts.Now.Truncate(time.Second))) // The API has whole seconds.
	}
	return since
}

// isIdle reports whether the chat has nothing to do. A message that cannot be taken up is something to do, unless the
// limits of the family keep the whole chat from beginning.
func isIdle(p *pass) bool {
	st := p.status()
	switch {
	case !p.idle():
		return false
	case st.Archived: // What is queued waits until it is unarchived.
		return true
	case len(st.Queue) > 0:
		return false
	case exceedsTreeLimits(p):
		return true
	case p.chat.Spec.Prompt != "" && st.History.Version == 0:
		return false
	}
	return !slices.ContainsFunc(p.facts.Open, func(m Message) bool { return isStillOpen(p, m) })
}

func exceedsTreeLimits(p *pass) bool {
	return p.facts.Blocked != nil && p.facts.Blocked.Reason == v1beta1.ErrorSubChatLimitExceeded
}

// isStillOpen reports whether the pass has neither taken the message up nor refused it.
func isStillOpen(p *pass, m Message) bool {
	return !slices.Contains(p.plan.Taken, m.Name) &&
		!slices.ContainsFunc(p.plan.Rejected, func(r Rejection) bool { return r.Message == m.Name })
}

// expiresAt is when the chat is deleted: so long after it and all below it came to rest, or at once if its class keeps
// enough others; zero: it is kept. Without its class it is not known for how long that is.
func expiresAt(p *pass) (at time.Time) {
	since := p.status().IdleSince
	if since == nil || isKept(p) {
		return at
	}
	if after := p.chat.Spec.Retention.DeleteAfter(p.status().Phase == v1beta1.ChatError); after > 0 {
		if at = since.Add(after); p.facts.IdleBelow.After(since.Time) {
			at = p.facts.IdleBelow.Add(after)
		}
	}
	if due := surplusSince(p); !due.IsZero() && (at.IsZero() || due.Before(at)) {
		return due
	}
	return at
}

// isKept reports whether the chat is kept, however long it has rested.
func isKept(p *pass) bool {
	return p.chat.Spec.ParentRef != nil || p.facts.Suspended || p.facts.AtWorkBelow || classMissing(p)
}

// surplusSince is since when the class of the chat keeps enough others, as far as its status shows; zero: it does not.
// What the chat did in this pass makes it the newest.
func surplusSince(p *pass) (due time.Time) {
	if !p.facts.Surplus || !p.status().IdleSince.Equal(p.chat.Status.IdleSince) {
		return due
	}
	due = p.facts.Now.Truncate(time.Second)
	if before := p.chat.Status.ExpiresAt; before != nil && before.Time.Before(due) {
		due = before.Time
	}
	return due
}

// Idle is a chat at rest.
type Idle struct {
	Name   string
	Since  time.Time
	Failed bool
}

// Surplus are the chats at rest that a class does not keep: of those that its limits count together, the ones that have
// rested for longest.
func Surplus(keep *v1beta1.ChatKeep, idle []Idle) (surplus []Idle) {
	if keep == nil || !exceeds(len(idle), keep.Chats) && !exceeds(len(idle), keep.FailedChats) {
		return nil
	}
	slices.SortFunc(idle, func(a, b Idle) int { return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.Name, b.Name)) })
	var chats, failed int32
	for _, chat := range idle {
		limit, count := keep.Chats, &chats
		if chat.Failed && keep.FailedChats != nil {
			limit, count = keep.FailedChats, &failed
		}
		if *count++; limit != nil && *count > *limit {
			surplus = append(surplus, chat)
		}
	}
	return surplus
}

func exceeds(count int, limit *int32) bool { return limit != nil && count > int(*limit) }
