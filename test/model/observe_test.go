// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/model/reference"
)

// observe is what people can see of a real chat, and what no chat may show: a history with a hole, leftovers.
func (d *driver) observe(o objects) (v reference.View, wrong []string) {
	if o.chat == nil {
		return v, []string{"there is no chat"}
	}
	st := &o.chat.Status
	v = reference.View{
		Phase: string(st.Phase), Ready: d.readyOf(o.chat), ContextStart: int(st.History.ContextStart),
		Requests: map[string]string{}, Messages: map[string]string{}, Approvals: map[string]string{},
	}
	for _, q := range st.Queue {
		v.Queue = append(v.Queue, reference.Waits(d.key(q.Name), q.Interrupts, q.HeldUntil != nil))
	}
	d.observeTurn(st, &v)
	for _, r := range st.Requests {
		v.Requests[string(r.Kind)] = reference.Words(r.Token, r.Outcome)
	}
	for name, m := range o.messages {
		if m.Spec.Generation == nil {
			v.Messages[d.key(name)] = reference.Words(m.Status.State,
				conditions(m.Status.Conditions, m.Generation, m.Status.ObservedGeneration))
		}
	}
	for name, a := range o.approvals {
		v.Approvals[d.key(name)] = conditions(a.Status.Conditions, a.Generation, a.Status.ObservedGeneration)
	}
	v.History, wrong = d.walk(o)
	if st.Internal.Superseded != nil {
		wrong = append(wrong, "messages have yet to be put aside")
	}
	return v, wrong
}

func (d *driver) observeTurn(st *v1beta1.ChatStatus, v *reference.View) {
	if t := st.Turn; t != nil {
		v.Turn = reference.Words(d.key(t.Message), t.Result)
	}
	if g := st.Generation; g != nil {
		v.Attempt = reference.Words(g.Attempt, g.Action)
	}
	if st.RequiresAction != nil {
		for _, call := range st.RequiresAction.ToolCalls {
			decision := v1beta1.ApprovalDecision("")
			if call.Decision != nil {
				decision = call.Decision.Decision
			}
			v.Asked = append(v.Asked, reference.Words(call.ID, call.Kind, decision))
		}
	}
	if st.LastError != nil {
		v.Error = string(st.LastError.Reason)
	}
}

// readyOf is status and reason of Ready. That a pod is starting is no matter of conversations.
func (d *driver) readyOf(chat *v1beta1.Chat) string {
	st := &chat.Status
	ready := conditions(st.Conditions, chat.Generation, st.ObservedGeneration)
	if ready != reference.Words(metav1.ConditionUnknown, v1beta1.ReasonWaitingForPod) || st.Generation == nil {
		return ready
	}
	switch st.Generation.Action {
	case v1beta1.ActionExecuteTools:
		return reference.Words(metav1.ConditionUnknown, v1beta1.ReasonExecutingTools)
	case v1beta1.ActionCompact:
		return reference.Words(metav1.ConditionUnknown, v1beta1.ReasonCompacting)
	}
	return reference.Words(metav1.ConditionUnknown, v1beta1.ReasonGenerating)
}

// conditions is status and reason of Ready, with what must not be in between: a status of an older generation,
// Reconciling or Stalled that do not agree with Ready.
func conditions(list []metav1.Condition, generation, observed int64) string {
	ready := meta.FindStatusCondition(list, v1beta1.ConditionReady)
	if ready == nil {
		return "no condition"
	}
	text := reference.Words(ready.Status, ready.Reason)
	if observed != generation {
		text += " of an older generation"
	}
	if meta.IsStatusConditionTrue(list, v1beta1.ConditionReconciling) != (ready.Status == metav1.ConditionUnknown) ||
		meta.IsStatusConditionTrue(list, v1beta1.ConditionStalled) != (ready.Status == metav1.ConditionFalse) {
		text += " but Reconciling or Stalled disagree"
	}
	return text
}

// walk follows the history from its head, oldest first, and finds holes and generated messages that are no part of it.
func (d *driver) walk(o objects) (history, wrong []string) {
	h := o.chat.Status.History
	inside, commits := map[string]bool{}, map[string]v1beta1.CommittedMessage{}
	for _, commit := range o.chat.Status.Internal.Tail {
		commits[commit.Message] = commit
	}
	name, next := h.Head, int64(math.MaxInt64)
	for i := h.Length - 1; i >= 0; i-- {
		m := o.messages[name]
		if m == nil && o.chat.Status.Archived { // It is cut off there once it is taken back.
			slices.Reverse(history)
			return history, wrong
		}
		if m == nil {
			return history, append(wrong, fmt.Sprintf("message %q at index %d of the history does not exist", name, i))
		}
		inside[name] = true
		key, place := d.key(name), commits[name]
		if g := m.Spec.Generation; g != nil {
			key = m.Labels[labelKey]
			place = v1beta1.CommittedMessage{Position: *m.Spec.Index, Parent: m.Spec.Parent,
				HistoryVersion: g.HistoryVersion + 1}
			for _, commit := range m.Spec.Follows {
				commits[commit.Message] = commit
			}
		} else if place.UID != string(m.UID) {
			wrong = append(wrong, fmt.Sprintf("message %q is not the one that was committed", name))
		}
		history = append(history, reference.Words(m.Spec.Role, key))
		if place.Position != i {
			wrong = append(wrong, fmt.Sprintf("message %q at index %d of the history says that it is at %d", name, i,
				place.Position))
		}
		if place.HistoryVersion > next { // One write commits a partial reply and the message that interrupted it.
			wrong = append(wrong, fmt.Sprintf("message %q was committed with version %d, and what follows with %d", name,
				place.HistoryVersion, next))
		}
		name, next = place.Parent, place.HistoryVersion
	}
	slices.Reverse(history)
	if name != "" {
		wrong = append(wrong, fmt.Sprintf("message %q is before the first one", name))
	}
	for name, m := range o.messages {
		if m.Spec.Generation != nil && !inside[name] && !answers(m, o.chat) {
			wrong = append(wrong, fmt.Sprintf("generated message %q is in no history", name))
		}
	}
	return history, wrong
}

// answers reports whether the message answers the attempt under way: a suspended chat leaves it until it is resumed.
func answers(m *v1beta1.ChatMessage, chat *v1beta1.Chat) bool {
	return chat.Status.Generation != nil && fenceOf(chat) == fence{m.Spec.Generation.HistoryVersion,
		m.Spec.Generation.Attempt}
}
