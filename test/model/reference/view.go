// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// View is what people can see of a chat, in words that can be compared and printed.
type View struct {
	// Phase of the chat, and status and reason of its condition Ready.
	Phase, Ready string
	// History is role and name of each message, oldest first.
	History []string
	// ContextStart is the index of the first message that the model sees.
	ContextStart int
	// Queue names the messages that wait, and says which cut in.
	Queue []string
	// Turn names the User message of the turn that is under way, or of the last one, and its result.
	Turn string
	// Attempt is number and action of the attempt under way.
	Attempt string
	// Asked are the calls that wait for people: id, what for, and the decision.
	Asked []string
	// Error is why the last turn failed.
	Error string
	// Requests are token and outcome of the newest request of each kind.
	Requests map[string]string
	// Messages are state, and status and reason of Ready, of each message that a person wrote.
	Messages map[string]string
	// Approvals are status and reason of Ready of each decision.
	Approvals map[string]string
}

// WaitsForChat is what a message says of itself whose chat can take nothing up.
var WaitsForChat = Words(v1beta1.MessagePending, metav1.ConditionUnknown, v1beta1.ReasonWaitingForChat)

// See is what people can see of the chat.
func (c *Chat) See() View {
	v := View{
		Phase: string(c.Phase), Ready: c.ready(), ContextStart: c.ContextStart, Queue: c.queued(), Error: string(c.Error),
		Requests: map[string]string{}, Messages: map[string]string{}, Approvals: map[string]string{},
	}
	if c.Archived {
		v.Queue = c.asPutAway
	}
	for _, m := range c.whole() {
		v.History = append(v.History, Words(m.Role, m.Name))
	}
	if u := c.user(); u != nil {
		v.Turn = Words(u.Name, u.Turn.Result)
	}
	if a := c.Attempt; a != nil {
		v.Attempt = Words(a.Number, a.Action)
	}
	for _, call := range c.Asked {
		v.Asked = append(v.Asked, Words(call.ID, call.RequiresAction, call.Decision))
	}
	for kind, request := range c.Requests {
		v.Requests[string(kind)] = Words(request.Token, request.Outcome)
	}
	for _, m := range c.people {
		v.Messages[m.Name] = Words(m.State, m.ready())
		if c.isBlocked() && !c.toArchive() && !c.Archived && m.waitsForChat() {
			v.Messages[m.Name] = WaitsForChat
		}
	}
	for _, a := range c.approvals {
		v.Approvals[a.name] = Words(metav1.ConditionFalse, v1beta1.ReasonNotPending)
		if a.applied {
			v.Approvals[a.name] = Words(metav1.ConditionTrue, v1beta1.ReasonApplied)
		}
	}
	return v
}

// queued are the messages that wait, and which of them cut in: that was acted on when it shows.
func (c *Chat) queued() (queue []string) {
	for _, name := range c.Queue {
		queue = append(queue, Waits(name, c.Person(name).CutsIn, c.Person(name).Held))
	}
	return queue
}

// Waits is a queued message in words.
func Waits(name string, cutsIn, held bool) string {
	if cutsIn {
		name = Words(name, "cuts in")
	}
	if held {
		name = Words(name, "held")
	}
	return name
}

// Words joins what is not empty.
func Words(words ...any) string {
	return strings.Join(strings.Fields(fmt.Sprintln(words...)), " ")
}

// ready is status and reason of the chat's condition Ready.
func (c *Chat) ready() string {
	switch {
	case c.Archived:
		return Words(metav1.ConditionTrue, v1beta1.ReasonArchived)
	case !c.busy() && c.toArchive():
		return Words(metav1.ConditionUnknown, v1beta1.ReasonArchiving)
	case c.isBlocked():
		return Words(metav1.ConditionFalse, c.blockedBy())
	case c.Phase == v1beta1.ChatError:
		return Words(metav1.ConditionFalse, c.Error)
	case c.Phase == v1beta1.ChatInterrupting:
		return Words(metav1.ConditionUnknown, v1beta1.ReasonInterrupting)
	case c.Phase == v1beta1.ChatRequiresAction:
		return Words(metav1.ConditionUnknown, v1beta1.ReasonRequiresAction)
	case c.Phase == v1beta1.ChatRunning && c.held() && c.Attempt == nil:
		return Words(metav1.ConditionUnknown, v1beta1.ReasonSuspended)
	case c.Phase == v1beta1.ChatRunning && c.Attempt == nil && c.blockedBy() != "":
		return Words(metav1.ConditionUnknown, c.blockedBy())
	case c.isOverBudget():
		return Words(metav1.ConditionFalse, v1beta1.ErrorBudgetReached)
	case c.Phase == v1beta1.ChatRunning && c.Attempt == nil && c.waitsForOthers():
		return Words(metav1.ConditionUnknown, v1beta1.ReasonWaitingForCapacity)
	case c.Phase == v1beta1.ChatRunning && c.Attempt == nil:
		return Words(metav1.ConditionUnknown, v1beta1.ReasonWaitingForSubChats)
	case c.Phase == v1beta1.ChatRunning && c.Attempt.Action == v1beta1.ActionExecuteTools:
		return Words(metav1.ConditionUnknown, v1beta1.ReasonExecutingTools)
	case c.Phase == v1beta1.ChatRunning && c.Attempt.Action == v1beta1.ActionCompact:
		return Words(metav1.ConditionUnknown, v1beta1.ReasonCompacting)
	case c.Phase == v1beta1.ChatRunning:
		return Words(metav1.ConditionUnknown, v1beta1.ReasonGenerating)
	case len(c.Queue) > 0:
		return Words(metav1.ConditionUnknown, v1beta1.ReasonWaitingForEdit)
	case c.user() == nil:
		return Words(metav1.ConditionTrue, v1beta1.ReasonAwaitingFirstMessage)
	case c.user().Turn.Result == v1beta1.TurnFailed: // Its error was cleared away, with the context.
		return Words(metav1.ConditionTrue, v1beta1.ReasonAnswered)
	}
	return Words(metav1.ConditionTrue, c.user().Turn.Result)
}

// ready is status and reason of the condition Ready of a person's message.
func (m *Message) ready() string {
	if m.Edited { // It counts as it was until the chat is taken back.
		return Words(metav1.ConditionUnknown, v1beta1.ReasonChatArchived)
	}
	switch m.State {
	case v1beta1.MessageQueued:
		if m.Held {
			return Words(metav1.ConditionUnknown, v1beta1.ReasonWaitingForEdit)
		}
		return Words(metav1.ConditionUnknown, v1beta1.ReasonQueued)
	case v1beta1.MessagePending:
		if m.Role == v1beta1.RoleUser {
			return Words(metav1.ConditionUnknown, v1beta1.ReasonChatArchived)
		}
		return Words(metav1.ConditionUnknown, v1beta1.ReasonWaitingForApproval)
	case v1beta1.MessageRejected, v1beta1.MessageSuperseded:
		return Words(metav1.ConditionFalse, m.Refusal)
	}
	if m.Role == v1beta1.RoleTool {
		return Words(metav1.ConditionTrue, v1beta1.ReasonResultsAccepted)
	}
	switch m.Turn.Result {
	case "":
		return Words(metav1.ConditionUnknown, v1beta1.ReasonAnswering)
	case v1beta1.TurnFailed:
		return Words(metav1.ConditionFalse, m.Turn.Failure)
	case v1beta1.TurnInterrupted:
		return Words(metav1.ConditionFalse, m.Turn.Result)
	}
	return Words(metav1.ConditionTrue, m.Turn.Result)
}
