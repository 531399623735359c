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
	"parley.dev/parley/internal/chat/machine"
)

// settleReport computes the conditions, last, from all the rest. The record of sub-chats then depends on whether there
// is something to write.
func settleReport(p *pass) {
	st := p.status()
	if st.Phase == "" {
		st.Phase = v1beta1.ChatWaiting
	}
	facts := conditions.ChatFacts{Generation: p.chat.Generation, Now: p.facts.Now}
	facts.Beginning = p.chat.Spec.Prompt != "" && st.History.Version == 0
	if p.idle() && len(p.facts.Open) > 0 {
		facts.Blocked = blockedBy(p, p.facts.Open[0])
		facts.MayCome = mayResolve(p, facts.Blocked)
	}
	addHoldReasons(p, &facts)
	facts.HeldUntil = nextRelease(p)
	if facts.Beginning {
		facts.NoPrompt = promptProblem(p)
	}
	facts.Archiving = p.facts.Archive && !st.Archived
	facts.FamilyAtWork = p.facts.FamilyAtWork
	st.Internal.ParentUID = p.facts.ParentUID
	st.Root = cmp.Or(p.facts.Root, st.Root)
	settleTitle(p)
	settleSummary(p)
	recordWaiting(p)
	pollServers(p)
	if !p.plan.Begins {
		facts.PodStarting = p.facts.PodStarting
	}
	markAdvisor(p)
	cleanTexts(st)
	markFallback(p)
	markClass(p)
	conditions.Chat(st, facts)
	settleRetention(p)
	if facts.HeldUntil != nil {
		p.plan.Again = Sooner(p.plan.Again, facts.HeldUntil.Sub(p.facts.Now))
	}
	noticeRefusal(p)
	noticeWait(p, mayEndAlone(&facts))
	recordSubChatCosts(p)
}

// Restoring is the plan for a chat whose restore from a backup is not finished: it does nothing and says so.
func Restoring(f Facts) Plan {
	p := Plan{Status: *f.Chat.Status.DeepCopy()}
	p.Status.Phase = cmp.Or(p.Status.Phase, v1beta1.ChatWaiting)
	conditions.Chat(&p.Status, conditions.ChatFacts{Restoring: true, Generation: f.Chat.Generation, Now: f.Now})
	return p
}

// addHoldReasons adds what holds work that is due.
func addHoldReasons(p *pass, facts *conditions.ChatFacts) {
	facts.Held, facts.OverBudget = p.held, p.overBudget
	facts.NoCapacity, facts.PodRejected = p.facts.NoCapacity, p.facts.PodRejected
	facts.ServersStarting = startingServers(p, p.facts.Servers)
	if limit := p.facts.ModelLimit; limit != nil {
		facts.ModelLimit, facts.ModelLimitUntil = limit.Message, limit.Until
	}
	if p.facts.Workspace != nil {
		facts.WorkspaceStarting = p.facts.Workspace.Starting
	}
	if p.held == machine.ReferenceMissing {
		facts.MissingReference = missingReference(p)
	}
}

// mayEndAlone reports whether what a person would have to do may come by itself.
func mayEndAlone(f *conditions.ChatFacts) bool {
	return f.MayCome || f.MissingReference != nil || f.NoPrompt != nil && f.NoPrompt.MayPass
}

// LongWaitAfter is how long a chat waits before that is worth an Event, unless it waits for somebody: 10 s.
const LongWaitAfter = 10 * time.Second

// noticeWait finds out whether the wait is worth an Event. What people have chosen, and what has an Event of its own,
// is not. passes is true while the wait may end by itself although it is for a person.
func noticeWait(p *pass, passes bool) {
	wait := p.status().Wait
	switch {
	case wait == nil || refusals[v1beta1.ConditionReason(wait.Reason)] != "":
	case wait.For == v1beta1.WaitForResume || wait.For == v1beta1.WaitForUnarchive || wait.For == v1beta1.WaitForEdit:
	case wait.For.NeedsPerson() && !passes:
		p.plan.LongWait = wait
	default:
		left := LongWaitAfter - p.facts.Now.Sub(wait.Since.Time)
		if left <= 0 {
			p.plan.LongWait = wait
			return
		}
		p.plan.Again = Sooner(p.plan.Again, left)
	}
}

// recordWaiting notes since when the next step waits for capacity: the order in which chats get it.
func recordWaiting(p *pass) {
	st := p.status()
	switch {
	case p.held != machine.NoCapacity:
		if st.WaitingSince != nil && st.Generation != nil {
			p.plan.CapacityWait = new(p.facts.Now.Sub(st.WaitingSince.Time))
		}
		st.WaitingSince = nil
	case st.WaitingSince == nil:
		st.WaitingSince = new(metav1.NewMicroTime(p.facts.Now))
	}
}

// ManifestPatience is how long a chat waits for what the manifest that it came with may still bring, before it says
// that a person is needed: 10 s. GitOps tools apply a manifest object by object, sorted by kind and name, and some give
// up at once when one is Stalled.
const ManifestPatience = 10 * time.Second

// transientReasons are the reasons that what a manifest brings later ends.
var transientReasons = []v1beta1.ErrorReason{
	v1beta1.ErrorModelConfigNotFound, v1beta1.ErrorChatClassNotFound, v1beta1.ErrorParentNotFound,
}

// mayResolve reports whether what blocks the first open message may pass by itself, because something that it needs
// was not there yet when it was created; and if so, when to look again.
func mayResolve(p *pass, blocked *v1beta1.GenerationError) bool {
	if blocked == nil || !slices.Contains(transientReasons, blocked.Reason) {
		return false
	}
	since := p.chat.CreationTimestamp.Time
	if said := p.facts.Open[0].Created; said.After(since) {
		since = said
	}
	p.plan.Again = max(0, ManifestPatience-p.facts.Now.Sub(since))
	return p.plan.Again > 0
}

// refusals are the Events for reasons of Ready that make one when they come up, and not again while they last.
var refusals = map[v1beta1.ConditionReason]v1beta1.EventReason{
	v1beta1.ReasonGenerationPodRejected: v1beta1.EventGenerationPodRejected,
	v1beta1.ReasonPromptRejected:        v1beta1.EventPromptRejected,
	v1beta1.ReasonPromptNameConflict:    v1beta1.EventPromptNameConflict,
}

// promptProblem is why spec.prompt cannot become a message, in the words of the conditions; nil if it can. A chat of
// the same name may just have been deleted, with its messages on their way out: until then no one is asked to do
// anything.
func promptProblem(p *pass) *conditions.NoPrompt {
	why := p.facts.NoPrompt
	if why == nil {
		return nil
	}
	told := &conditions.NoPrompt{Message: why.Message, Refused: why.Refused}
	if left := ManifestPatience - p.facts.Now.Sub(p.chat.CreationTimestamp.Time); why.Refused == "" && left > 0 {
		p.plan.Again, told.MayPass = left, true
	}
	return told
}

// noticeRefusal makes an Event of a refusal that the chat has not told of before.
func noticeRefusal(p *pass) {
	ready := meta.FindStatusCondition(p.status().Conditions, v1beta1.ConditionReady)
	before := meta.FindStatusCondition(p.chat.Status.Conditions, v1beta1.ConditionReady)
	reason := v1beta1.ReasonOf(ready)
	if event, refused := refusals[reason]; refused && v1beta1.ReasonOf(before) != reason {
		p.notice(event, v1beta1.EventActionGenerate, ready.Message)
	}
}
