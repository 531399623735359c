// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what one pass of the reconciler does to a chat. Given all that was read (Facts), Advance asks
// the state machine (package machine) and which action comes next until nothing more can be done without waiting,
// and returns the one status to write (Plan). It is pure: no client, no clock, no logger.
//
// The invariant that it keeps: one status write commits a step and starts the next, so that there is no moment between
// the two at which a crash could lose either.
package plan

import (
	"slices"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/modelconfig"
	"parley.dev/parley/internal/chat/tree"
)

// Facts is all that was read about a chat in one pass.
type Facts struct {
	// Chat as it was read; its resourceVersion fences the write.
	Chat *v1beta1.Chat
	// Result is the message that has the name of the result of the attempt under way,
	// if there is one. It need not answer it.
	Result *v1beta1.ChatMessage
	// Deleted is the newest result of the chat that was deleted, without what it said; nil if none is known of. It need
	// not answer the attempt under way.
	Deleted *v1beta1.ChatMessage
	// Summary is the message SummaryName, in which a model says what became of the turn that has just ended; nil if there
	// is none. HeadPod is the pod that gave the reply which ended it.
	Summary     *v1beta1.ChatMessage
	SummaryName string
	HeadPod     string
	// Open are the User messages that are neither in the history nor in the queue, in the order to take them.
	Open []Message
	// Queued are the queued messages that exist, as they are now; one that is missing was deleted.
	Queued []Message
	// Edited is the first committed User message whose content is no longer what was committed; nil if there is none.
	Edited *Edited
	// Truncated is what is left of the history if a message of it was deleted; nil if it is whole.
	Truncated *Truncated
	// Calls are the calls of the reply CallsOf that wait for a client or for approval; none if the reply is gone.
	Calls   []v1beta1.PendingToolCall
	CallsOf string
	// Results are the messages of clients with results of calls that have not been taken, oldest first.
	Results []*v1beta1.ChatMessage
	// Approvals are the decisions about calls that have not been acted on, oldest first.
	Approvals []Approval
	// Requests are those of the annotations that have not been acted on.
	Requests []Request
	// Suspended is true when the chat's work is held.
	Suspended bool
	// AgentsOf is the message whose decisions about sub-chats have been carried out, and AgentsRejected what the API
	// server says against those that it does not take.
	AgentsOf       string
	AgentsRejected []string
	// SubChats are those for which calls of the turn wait, as far as the plan asked for them:
	// true for one that is still at work.
	SubChats map[string]bool
	// Workspace is how the workspace stands that calls of the turn, or MCP servers of the chat, need; nil as long as the
	// plan has not asked for it.
	Workspace *Workspace
	// Servers are the MCP servers that the chat refers to, in the order of its spec; nil as long as the plan has not asked
	// for them.
	Servers []Server
	// HasWorkspace is true when the chat's family has a workspace.
	HasWorkspace bool
	// HasSubChats is true when the chat has sub-chats.
	HasSubChats bool
	// IdleBelow is since when the chats below have had nothing to do; zero if there are none, or if that decides
	// nothing. AtWorkBelow is true while one of them has.
	IdleBelow   time.Time
	AtWorkBelow bool
	// ArchiveFailed is why the chat could not be archived the last time; the zero value: it could, or was not to be.
	ArchiveFailed ArchiveFailure
	// ArchiveBegun is true when this process has written something of an archive of the chat.
	ArchiveBegun bool
	// Surplus is true when the chat's class keeps enough other chats that came to rest later.
	Surplus bool
	// Pod is the generation pod that the attempt which begins is given to; empty until there is one. The chat has a slot
	// to generate then.
	Pod string
	// ModelLimit is what keeps the model of the attempt that begins from being called; nil when it may be called.
	ModelLimit *ModelLimit
	// NoCapacity says which limit keeps the chat from generating, and what to do; empty when it may.
	NoCapacity string
	// PodRejected is why the API server refuses the generation pod that the next step needs; empty unless it was tried.
	PodRejected string
	// PromptMissing is true when the message that spec.prompt stands for has yet to be created.
	// Nothing else is taken up before it.
	PromptMissing bool
	// NoPrompt is why spec.prompt cannot become a message; nil if it can, or is one.
	NoPrompt *NoPrompt
	// Archive is true when the chat is to be archived.
	Archive bool
	// FamilyAtWork names another chat of the family to be archived that is still at work; empty if there is none.
	FamilyAtWork string
	// SubChatCosts are what the chats below have cost: the chat's budget counts for them, too.
	SubChatCosts tree.Costs
	// BudgetsAbove are the budgets of chats above that count for this one, too.
	BudgetsAbove []tree.BudgetAbove
	// ParentArchived is true when the parent is archived.
	ParentArchived bool
	// Root is the chat at the top of the family; nil while a chat above is missing.
	Root *v1beta1.FamilyRoot
	// ParentUID of the parent, if there is one.
	ParentUID string
	// PodLost is true when the pod of the attempt under way can no longer answer; PodLostBy says why, if there is more
	// to say than that it is gone.
	PodLost   bool
	PodLostBy string
	// PodStarting says what keeps the pod of the attempt under way from being ready for the first time; empty once it was.
	PodStarting string
	// Class of the chat; nil if it has none. Chat has the settings that are in force.
	Class *Class
	// Namespace is the ChatClass whose namespacePreamble stands before all else; nil if there is none.
	Namespace *v1beta1.ChatClass
	// Model that answers; nil if there is none, and then Blocked says why.
	Model *Model
	// Blocked is why there is no Model.
	Blocked *v1beta1.GenerationError
	// FellBack is why the namespace's default answers in place of the ChatModelConfig that the chat names;
	// nil if it does not.
	FellBack *v1beta1.GenerationError
	// NoAdvice is why the advisor that the chat names can give none; nil if it can, or if the chat names none.
	NoAdvice *v1beta1.GenerationError
	// Named are the models that messages name for their turns, by the name of the ChatModelConfig, as far as the plan
	// asked for them; nil for one that does not exist.
	Named map[string]*Model
	// Now is the time of this pass.
	Now time.Time
}

// Class is the ChatClass of a chat.
type Class struct {
	*v1beta1.ChatClass
	// Said is the chat with what it says itself.
	Said *v1beta1.Chat
	// Ignored are the fields of the chat's spec that do not count because of it.
	Ignored []string
}

// Of is the ChatClass; nil if there is none.
func (c *Class) Of() *v1beta1.ChatClass {
	if c == nil {
		return nil
	}
	return c.ChatClass
}

// ArchiveFailure is why a chat could not be archived.
type ArchiveFailure struct {
	Reason  v1beta1.ConditionReason
	Message string
}

// Workspace is how the workspace of a chat's family stands.
type Workspace struct {
	// Starting is what it waits for, in its own words; empty when calls can be run: it is ready, or a person is needed,
	// which the calls' results say then.
	Starting string
	// Since is when it was last said to be ready, or to be no longer; zero if that is not known.
	Since time.Time
}

// Server is an MCP server that a chat refers to.
type Server struct {
	v1beta1.MCPServerAddress
	// Starting is true when it may come to be ready without a person.
	Starting bool
}

// ModelLimit is what keeps a model from being called.
type ModelLimit struct {
	// Message says which limit it is, and what to do.
	Message string
	// Until is the time before which the provider asked not to be called; zero if that is not what limits it.
	Until time.Time
}

// NoPrompt is why spec.prompt cannot become a message.
type NoPrompt struct {
	// Refused is what the API server says against the message; empty if another message has its name.
	Refused string
	// Message that has its name, or would have it.
	Message string
}

// Message is a User message, as far as it matters here.
type Message struct {
	Name, UID string
	// Interrupts is true for a message that cuts in when the chat is busy.
	Interrupts bool
	// ContentHash is of what the message says.
	ContentHash string
	// LastRole is who speaks last in it: an Assistant in a history that needs no answer.
	LastRole v1beta1.MessageRole
	// ModelConfig is the ChatModelConfig that the message names for its turn; empty: the chat's.
	ModelConfig string
	// Effort that the message asks for.
	Effort v1beta1.ReasoningEffort
	// FirstWords are how the message begins, for a title; empty if it was not read.
	FirstWords string
	// Created is when the message was created.
	Created time.Time
	// Traceparent is the trace context that the turn is to be traced under; empty if the message names none.
	Traceparent string
	// HoldUntil is the time until which someone who edits the message wants it held; zero if no one does.
	HoldUntil time.Time
}

// Edited is a committed User message that was edited, and where it stands.
type Edited struct {
	Message
	// Commit of the message as it was before.
	Commit v1beta1.CommittedMessage
	// Tail are the commits right before it, behind the generated message before.
	Tail []v1beta1.CommittedMessage
}

// Approval is a decision about a call.
type Approval struct {
	v1beta1.ToolDecision
}

// Request is what an annotation asks for.
type Request struct {
	Kind  v1beta1.RequestKind
	Token string
}

// Model is a resolved ChatModelConfig.
type Model struct {
	Alternative
	// Disabled is true for one that is out of use. Then nothing else is known of it.
	Disabled bool
	// Fallbacks are the models to ask when this one cannot answer, in order.
	Fallbacks []Alternative
	// Retry says how failed attempts are tried again; nil: by the defaults.
	Retry *v1beta1.RetryPolicy
	// ContextLimit is how many tokens a context may have: what this model holds, or what ContextLimitConfig says of the
	// one that writes summaries, if that is less. The zero Limit is one that is not known.
	ContextLimit modelconfig.Limit
	// ContextLimitConfig is the name of the ChatModelConfig whose limit it is.
	ContextLimitConfig string
	// ThresholdPercent is how full the context may get; 100: it is not watched.
	ThresholdPercent int32
	// Summarizer writes the summaries; nil: the model itself.
	Summarizer *Alternative
	// SummarizerMissing is the ChatModelConfig that is to write them and does not exist, or is disabled; empty if none is.
	SummarizerMissing string
	// Titles and TurnSummaries are true where a model writes them.
	Titles, TurnSummaries bool
}

// Alternative is one of the models that may be asked.
type Alternative struct {
	// Config is the name of the ChatModelConfig.
	Config string
	// Name of the model, as the provider calls it.
	Name string
	// Currency of its prices; empty if it has none.
	Currency v1beta1.Currency
	// NotBefore is the time before which its provider asked not to be called; zero if it did not.
	NotBefore time.Time
}

// forAction are the models that may be asked to perform the action, in order. Without a summary a long chat could not
// go on, so that one which the chat's own model can write does not depend on another one.
func (m *Model) forAction(action v1beta1.GenerationAction) []Alternative {
	own := append([]Alternative{m.Alternative}, m.Fallbacks...)
	if action != v1beta1.ActionCompact || m.Summarizer == nil {
		return own
	}
	own = slices.DeleteFunc(own, func(a Alternative) bool { return a.Config == m.Summarizer.Config })
	return append([]Alternative{*m.Summarizer}, own...)
}

// Plan is what one pass does. It is final when it asks for nothing.
type Plan struct {
	// Asks is what must be known before anything of the plan may be done.
	Asks Asks
	// Status to write, if it differs from what was read.
	Status v1beta1.ChatStatus
	// Begins is true when Status.Generation is an attempt that begins.
	Begins bool
	// PodAfter is the time after which that pod must have been created, so that it has a corrected API key; zero: any.
	PodAfter time.Time
	// Taken names the User messages that become part of the history or the queue.
	Taken []string
	// Rejected are the messages that are refused.
	Rejected []Rejection
	// Applied names the ToolApprovals that apply, NotPending those whose call does not wait, and Mismatched those with the
	// digest of another call.
	Applied, NotPending, Mismatched []string
	// Superseded names the queued messages that are dropped, because the conversation that they continued is no more.
	Superseded []string
	// PutAside is true when the messages of Chat.status.internal.superseded must be put aside before the status is
	// written.
	PutAside bool
	// Transitions of the state machine that the plan makes, in their order.
	Transitions []Transition
	// CapacityWait is how long the step that begins had to wait for a place; nil if it had not.
	CapacityWait *time.Duration
	// LongWait is the wait of the status if it is worth an Event: it needs somebody, or has lasted for LongWaitAfter.
	LongWait *v1beta1.ChatWait
	// Notices are worth an Event.
	Notices []Notice
	// Expires is true when the chat is to be deleted because it has rested for long enough.
	Expires bool
	// DiscardsArchive is true when what was written of an archive of the chat is to be removed, because the chat lives on.
	DiscardsArchive bool
	// Again is how long until the conditions change because of the time alone; zero: they do not.
	Again time.Duration
}

// Asks is what a decision depends on that is not known, or not there: whoever carries the plan out provides it, adds it
// to the facts, and lets Advance decide once more. So no one but the decision has to know what it will come to need.
type Asks struct {
	// Prompt is true when the message that spec.prompt stands for is to be created.
	Prompt bool
	// Models names the ChatModelConfigs that messages name for their turns.
	Models []string
	// Calls is the reply whose calls people and clients are to be asked for.
	Calls string
	// Agents is the committed message that decides something about sub-chats.
	Agents string
	// SubChats are those of which it matters whether they are at work.
	SubChats []string
	// Workspace is true when calls that are to be run next need the family's workspace.
	Workspace bool
	// Servers is true when an attempt begins that is to be told where the MCP servers are that the chat refers to.
	Servers bool
	// Summary is the message in which a model would say what became of the turn that has just ended.
	Summary string
	// Pod is true when an attempt begins, which needs a slot and a generation pod.
	Pod bool
}

// Nothing reports whether the plan is final.
func (a *Asks) Nothing() bool {
	return !a.Prompt && !a.Pod && a.Agents == "" && !a.Workspace && !a.Servers && a.Calls == "" && a.Summary == "" &&
		len(a.Models) == 0 && len(a.SubChats) == 0
}

// Rejection is a message that is refused.
type Rejection struct {
	Message string
	// Reason of its Ready condition.
	Reason v1beta1.ConditionReason
	// Note is the sentence for its author.
	Note string
}

// Notice is something that a person may want to know about, once.
type Notice struct {
	Reason v1beta1.EventReason
	// Action that was being performed.
	Action v1beta1.EventAction
	// Note is a sentence without any content of messages.
	Note string
}
