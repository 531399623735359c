// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chat has no code: it is the map of all that is decided about a chat. Its packages are pure, without client,
// clock or logger. They may import approval, netguard/hostlist, pods, telemetry and text.
//
// Start with plan.Advance, which controllers/chat calls with everything that it has read. It asks the state machine,
// and returns the one status to write:
//
//	what does the chat do next?            plan/next_action.go, a table of rules
//	which transitions are possible?        machine/table*.go, and the guards in machine/guard.go
//	what follows a failed attempt?         plan/retry.go: the next model, the wait, or the end of the turn
//	may a model be called?                 budget, with prices by cost
//	when is the context compacted?         plan/compaction.go, with the limits of modelconfig
//	which model and which settings apply?  modelconfig, chatclass
//	what waits, and for what?              plan/queue.go for messages, conditions/wait.go for status.wait
//	what do people read?                   conditions, from the facts of the plan
//	which message answers an attempt?      attempts, by the fence that is in its name (fence)
//	where does a message stand?            history
//	how do chats of a family depend?       tree, and agents for what models decide about sub-chats
package chat
