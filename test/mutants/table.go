// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// Folders of the core.
const (
	machineDir  = "internal/chat/machine/"
	planDir     = "internal/chat/plan/"
	historyDir  = "internal/chat/history/"
	attemptsDir = "internal/chat/attempts/"
	chainDir    = "internal/generation/chain/"
	chatDir     = "controllers/chat/"
	messageDir  = "controllers/chatmessage/"
)

// planTests say what faults of the state machine mean for a chat: its own tests repeat its table.
var planTests = []string{"./internal/chat/plan"}

// mutants are short expressions that matter to people, so that most refactorings carry them along.
var mutants = []mutant{
	// The fence of an attempt, and its result.
	{"fence", "the result of an attempt that was given up is committed",
		attemptsDir + "attempts.go", "Answered(m) == under && ", "", nil},
	{"fence-pod", "a pod that lost its attempt still answers it",
		attemptsDir + "attempts.go", "g.Pod == st.Generation.Pod && ", "", nil},
	{"attempt-edited", "an edit counts the loss of the old pod against the new attempt",
		planDir + "attempt.go", "case st.Generation != p.underWay:", "case false:", nil},
	{"retry-number", "the next attempt has the fence of the failed one",
		planDir + "attempt.go", "last.Attempt+1", "last.Attempt", nil},
	{"step-fence", "the next step has the fence of the one that was committed",
		machineDir + "table_turn.go", "AppendStep, ClearCompaction, BumpHistory,", "AppendStep, ClearCompaction,", planTests},
	{"status-overwritten", "a status is written over a newer one of the chat",
		chatDir + "report.go", "next.Status = todo.Status", `next.Status, next.ResourceVersion = todo.Status, ""`, nil},
	{"pod-lost", "a turn waits for a pod that is gone",
		planDir + "lost.go", "return p.facts.PodLost || attemptOverdue(p)", "return attemptOverdue(p)", nil},

	// Retries.
	{"retries", "a step is tried once more than the limit allows",
		planDir + "retry.go", "failed.Attempt >= mostAttempts", "failed.Attempt > mostAttempts", nil},

	// Money and limits.
	{"budget", "a chat whose budget is reached continues",
		machineDir + "guard.go", "return !f.OverBudget", "return true", planTests},
	{"budget-deleted", "the cost of deleted sub-chats is forgotten",
		planDir + "models.go", "cost.Sum(p.status().DeletedCost,", "cost.Sum(nil,", nil},
	{"budget-record", "a sub-chat that the cache does not show counts as deleted",
		chatDir + "gather_costs.go", "string(found.UID) == entry.UID, nil", "false, nil", nil},
	{"budget-newest", "a deleted sub-chat counts without its newest steps",
		chatDir + "gather_costs.go", "r.costs.last(keyOf(chat), missing)", "missing.Cost", nil},
	{"cost", "replies cost nothing",
		planDir + "attempt.go", "st.Cost = cost.Add(st.Cost, *g.Cost)", "_ = *g.Cost", nil},
	{"suspended", "a suspended chat continues",
		machineDir + "guard.go", "return !f.Suspended", "return true", planTests},

	// Compaction.
	{"threshold", "a context that has reached the threshold is not compacted",
		planDir + "compaction.go", "context.Tokens*100 < ", "context.Tokens*100 <= ", nil},
	{"compaction-loop", "a context that a summary did not shorten is compacted again and again",
		planDir + "compaction.go", "case !context.Compacted || context.Replies > 1:", "case true:", nil},

	// The queue.
	{"queue-full", "more messages are queued than may be",
		machineDir + "guard.go", "return f.QueueLen < f.QueueCap }", "return f.QueueLen <= f.QueueCap }", planTests},
	{"queue-order", "the newest queued message is answered first",
		planDir + "queue.go", "next := st.Queue[first].Name", "next := st.Queue[len(st.Queue)-1].Name", nil},
	{"queue-twice", "a message stays in the queue when its turn begins, and is answered twice",
		planDir + "queue.go", "slices.Delete(st.Queue, first, first+1)", "slices.Clone(st.Queue)", nil},
	{"queue-held", "a message that someone edits is answered",
		planDir + "queue.go", "return q.HeldUntil == nil })", "return true })", nil},
	{"cut-in-order", "a message that cuts in overtakes others that cut in before it",
		planDir + "queue.go", "case queued.Interrupts:", "case false:", nil},
	{"creation-order", "messages are answered in the reverse order of their creation",
		planDir + "open.go", "return ByCreation(a, b, createdVersion(a), createdVersion(b))",
		"return ByCreation(b, a, createdVersion(b), createdVersion(a))", nil},

	// A message is committed once.
	{"committed-open", "a message that was answered is answered again",
		planDir + "open.go", "m.Status.State == v1beta1.MessageCommitted, m.Spec.IsNote()", "m.Spec.IsNote()", nil},
	{"committed-unread", "a message that the cache still shows open is answered again",
		chatDir + "gather_messages.go", "if older(chat.ResourceVersion, m.ResourceVersion)", "if true", nil},
	{"prompt-twice", "a prompt that was deleted is answered again",
		chatDir + "act_prompt.go", " && now.Status.History.Version == 0", "", nil},
	{"followed", "a message that a reply follows is answered again before its status says that it is committed",
		chatDir + "gather_messages.go", "err != nil || !maybe {", "err != nil || !maybe || true {", nil},
	{"followed-late", "a message is answered again by a manager whose cache lacks the reply",
		chatDir + "gather_messages.go", "return true, err", "return false, err", nil},
	{"follows", "a reply is committed that does not record what it follows",
		"internal/chat/attempts/attempts.go", "history.Records(m, st.Internal.Tail) && isWhole(g)",
		"(history.Records(m, nil) || isWhole(g))", planTests},
	{"cut-new", "a message that was cut off is taken for a new one before it is put aside",
		chatDir + "gather_messages.go", "if chat.Status.Internal.Superseded != nil {", "if false {", nil},
	{"cut-removed", "a reply that was cut off is removed before what it follows is put aside",
		messageDir + "remove.go", "if chat.Status.Internal.Superseded != nil {", "if false {", nil},
	{"recreated", "a message that was created again under its name takes the place of the deleted one",
		historyDir + "node.go", `case commit.UID != "" && commit.UID != n.UID:`, "case false:", nil},
	{"tail-kept", "a reply records what an earlier one has recorded",
		planDir + "turn.go", "st.Internal.Tail = nil", "", nil},

	// Interruptions.
	{"partial", "an interruption loses what was said so far",
		machineDir + "table_turn.go", "AppendPartial, EndTurn, CancelCalls, BumpHistory,",
		"EndTurn, CancelCalls, BumpHistory,", planTests},
	{"interrupt-patience", "an interrupted turn whose pod is silent never ends",
		planDir + "interrupt.go", ">= InterruptPatience", "< 0", nil},
	{"request-token", "a second interruption is ignored",
		planDir + "requests.go", "h.Kind == kind && h.Token == token", "h.Kind == kind", nil},
	{"sub-chat-canceled", "a sub-chat that the model cancels continues",
		chatDir + "act_agents.go", "sub.Annotations[v1beta1.RequestInterrupt.Annotation()] = token", "", nil},
	{"sub-chat-suspended", "a sub-chat of a suspended chat continues",
		chatDir + "gather_family.go", "f.Suspended = tree.Suspended(chat, above)", "", nil},

	// Calls that wait for people and clients.
	{"approval", "a call is run before people have decided about it",
		planDir + "next_action.go", "f.outstandingCalls > f.callsRequiringAction", "f.outstandingCalls > 0", nil},
	{"approval-all", "a turn continues although one call is not decided",
		planDir + "action.go", "undecidedCalls(p, v1beta1.RequiresApproval) == 0 {", "true {", nil},
	{"approval-digest", "an approval counts for a call that the person has not seen",
		"internal/approval/approval.go", "decision.Digest == call.Digest", "decision != nil",
		planTests},
	{"action-deadline", "calls that no one answers are waited for without end",
		planDir + "deadline.go", "if st.RequiresAction != nil {", "if false {", nil},

	// Edits and deletions.
	{"edit-replies", "the replies to an edited message stay in the history",
		planDir + "cut.go", "h.Head, h.Length, from = e.Commit.Parent, e.Commit.Position, e.Commit.Position+1",
		"from = e.Commit.Position + 1", nil},
	{"edit-removed", "old replies to an edited message are not removed",
		chatDir + "act.go", "a.putAside, ", "", nil},
	{"stale-removed", "a reply in the history is removed as a leftover",
		messageDir + "remove.go", "return !inHistory, err", "return inHistory, err", nil},

	// Histories, and what a model is shown of them.
	{"certain-chat", "a model reads the messages of a deleted chat of the same name",
		historyDir + "certain.go", "return g.ChatUID == string(chat.UID)", "return true", nil},
	{"chain-edited", "a model answers a message as it was before an edit",
		chainDir + "loader.go", `n.Commit != nil && n.Commit.ContentHash`, `false && n.Commit.ContentHash`, nil},
	{"chain-kept", "a model reads a message that was edited as it was kept",
		chainDir + "loader.go", "return m.Spec.Generation != nil ||", "return true ||", nil},

	// Archives and retention.
	{"archive-busy", "a chat is archived although a chat below it is at work",
		machineDir + "guard.go", "return !f.FamilyBusy", "return true", planTests},
	{"archive-turn", "a chat is archived although its turn runs",
		machineDir + "table_manage.go", "[]Edge{{Waiting, ArchivedWaiting}, ",
		"[]Edge{{Waiting, ArchivedWaiting}, {Running, ArchivedWaiting}, ", planTests},
	{"archive-open", "a chat that is to be archived begins another turn",
		planDir + "queue.go", "p.facts.Archive || p.status().Archived ||", "p.status().Archived ||", nil},
	{"expire-used", "a chat is deleted for its rest although somebody has just used it",
		chatDir + "expire.go", "ResourceVersion: &version", "ResourceVersion: map[bool]*string{true: &version}[false]", nil},
}
