// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"slices"

	"parley.dev/parley/internal/telemetry"
)

// ofChats selects the controllers without which no chat continues, among those of all operators.
const ofChats = `controller=~"chat|chatmessage"`

// chats are what people notice first.
func chats() row {
	turns := telemetry.MetricTurns
	return row{"Chats", slices.Concat([]panel{
		{title: "Chats by phase", unit: "short",
			description: "New: the manager has not looked at the chat. No data: no manager is scraped (ParleyManagerDown).",
			queries:     []query{perShard(telemetry.MetricChats, telemetry.LabelPhase)}},
		{title: "Chats that wait", unit: "short",
			description: "By what ends the wait, as docs/reference/chat.md explains it.",
			queries:     []query{perShard(telemetry.MetricWaits, telemetry.LabelFor)}},
	}, longestWaits(), []panel{
		{title: "Chats that are archived", unit: "reqps", description: "Before their retention deletes them, by result.",
			queries: []query{perSecond(telemetry.MetricArchivedChats, telemetry.LabelResult)}},
		{title: "Turns that end", unit: "reqps",
			description: "By result. Superseded: an edit or a deletion ended the turn.",
			queries:     []query{perSecond(turns, telemetry.LabelResult)}},
		{title: "Part of the turns that fails", unit: "percentunit", alert: new(.1),
			description: "ParleyTurnsFail fires beyond the line.",
			queries: []query{{fmt.Sprintf(
				`sum(rate(%[1]s{result="Failed"}[$__rate_interval])) / sum(rate(%[1]s[$__rate_interval]))`, turns), "failed"}}},
		{title: "Why turns fail", unit: "reqps", description: "Reasons as docs/reference/errors.md explains them.",
			queries: []query{{`sum by (reason) (rate(` + turns + `{result="Failed"}[$__rate_interval]))`, "{{reason}}"}}},
		{title: "Chats that generate", unit: "short",
			description: "Of chats (root) and sub-chats (sub): how many generate, wait for a place, and may generate.",
			queries: []query{
				perShard(telemetry.MetricGenerating, "level").called("generating"),
				perShard(telemetry.MetricWaiting, "level").called("waiting"),
				shared(telemetry.MetricGeneratingLimit, "level").called("limit"),
			}},
		{title: "Messages and results that were refused", unit: "reqps",
			description: "Messages that the chat did not take; results that came too late, or that the API server refused.",
			queries: []query{perSecond(telemetry.MetricRejectedMessages, telemetry.LabelReason).called("message"),
				perSecond(telemetry.MetricRefusedResults, telemetry.LabelReason).called("result")}},
		{title: "Part of the manager's work that fails", unit: "percentunit", alert: new(.5),
			description: "On chats and on messages. ParleyManagerFails fires beyond the line.",
			queries: []query{{`sum by (controller) (rate(controller_runtime_reconcile_errors_total{` + ofChats +
				`}[$__rate_interval])) / sum by (controller) (rate(controller_runtime_reconcile_total{` + ofChats +
				`}[$__rate_interval]))`, "{{controller}}"}}},
		{title: "Shards for each that has a manager", unit: "short", alert: new(1.0),
			description: "No data: there is one. ParleyShardsAreMissing fires beyond the line.",
			queries: []query{{fmt.Sprintf(`max(%[1]s) / count(count by (%[2]s) (%[1]s))`, telemetry.MetricShards,
				telemetry.LabelShard), "shards"}}},
		{title: "Admission policies are missing", unit: "short", alert: new(0.0),
			description: "1: no policy refused what the manager may not write. ParleyPoliciesAreMissing fires beyond the line.",
			queries:     []query{shared(telemetry.MetricPoliciesMissing).called("missing")}},
	})}
}

// longestWaits are for how long the chat has waited that has waited longest, by what ends the wait.
func longestWaits() []panel {
	return []panel{
		{title: "Longest wait for people", unit: "s",
			description: "For decisions about tool calls, answers to questions, and results of clients.",
			queries:     []query{longestWait("Approval", "Answer", "ClientResult")}},
		{title: "Longest wait for an administrator", unit: "s", alert: new(3600.0),
			description: "ParleyChatsNeedAttention fires beyond the line.",
			queries:     []query{longestWait("ChatModelConfig", "ChatClass", "Secret", "Message", "Quota", "Capacity")}},
		{title: "Longest wait for models", unit: "s", alert: new(1800.0),
			description: "For limits, or because a provider asked to wait. ParleyChatsWaitForModels fires beyond the line.",
			queries:     []query{longestWait("Model", "Retry")}},
		{title: "Longest wait for a budget", unit: "s", alert: new(900.0),
			description: "ParleyBudgetsAreReached fires beyond the line.",
			queries:     []query{longestWait("Budget")}},
		{title: "Longest wait for generation pods", unit: "s", alert: new(60.0),
			description: "In 5 minutes. ParleyPodsDoNotStart fires after 10 minutes beyond the line.",
			queries:     []query{longestWait("Pod").within("5m")}},
		{title: "Longest wait for workspaces", unit: "s", alert: new(240.0),
			description: "In 10 minutes. ParleyWorkspacesDoNotStart fires beyond the line.",
			queries:     []query{longestWait("Workspace").within("10m")}},
		{title: "Longest wait for the archive", unit: "s", alert: new(1800.0),
			description: "Chats that are kept because they cannot be archived. ParleyArchivesFail fires beyond the line.",
			queries:     []query{longestWait("ArchiveStore")}},
	}
}

// waits are where the time goes.
func waits() row {
	return row{"Where the time goes", []panel{
		{title: "Turns", unit: "s", description: "From the beginning of a turn to its end, waits for people included.",
			queries: spread(telemetry.MetricTurnDuration, telemetry.LabelResult)},
		{title: "Messages in the queue", unit: "s",
			description: "From the creation of a message to the beginning of its turn.",
			queries:     spread(telemetry.MetricQueueWait)},
		{title: "Steps that wait for a place", unit: "s", alert: new(60.0),
			description: "As many chats generate as the quotas allow. ParleyIsAtItsLimits fires beyond the line.",
			queries:     spread(telemetry.MetricCapacityWait)},
		{title: "First part of a reply", unit: "s", alert: new(30.0),
			description: "How long people look at nothing. ParleyRepliesStartLate fires beyond the line.",
			queries:     spread(telemetry.MetricTimeToFirstPart, telemetry.LabelProvider)},
		{title: "Steps", unit: "s", description: "From the assignment of the attempt that succeeded to the commit.",
			queries: spread(telemetry.MetricStepDuration, telemetry.LabelAction)},
		{title: "Commits", unit: "s", alert: new(2.0),
			description: "Parley's own share of a step. ParleyCommitsAreSlow fires beyond the line.",
			queries:     spread(telemetry.MetricCommitLatency)},
	}}
}

// models are what is paid for.
func models() row {
	tokens := telemetry.MetricTokens
	return row{"Models", []panel{
		{title: "Tokens a second", unit: "short", description: "Reasoning is a part of output and not drawn.",
			queries: []query{{`sum by (provider, kind) (rate(` + tokens + `{kind!="reasoning"}[$__rate_interval]))`,
				"{{provider}} {{kind}}"}}},
		{title: "Part of the prompts that came from a cache", unit: "percentunit", description: "By provider.",
			queries: []query{{fmt.Sprintf(`sum by (provider) (rate(%[1]s{kind="cache_read"}[$__rate_interval])) / `+
				`sum by (provider) (rate(%[1]s{kind=~"input|cache_.*"}[$__rate_interval]))`, tokens), "{{provider}}"}}},
		{title: "Model calls", unit: "s", description: "How long calls take.",
			queries: spread(telemetry.MetricModelCallDuration, telemetry.LabelProvider)},
		{title: "Model calls that end", unit: "reqps", description: "By provider and outcome.",
			queries: []query{perSecond(telemetry.MetricModelCallDuration+"_count", telemetry.LabelProvider,
				telemetry.LabelOutcome)}},
		{title: "Part of the model calls that fails", unit: "percentunit", alert: new(.25),
			description: "By provider. ParleyProviderFails fires beyond the line.",
			queries: []query{{fmt.Sprintf(`sum by (provider) (rate(%[1]s{outcome="Failed"}[$__rate_interval])) / `+
				`sum by (provider) (rate(%[1]s[$__rate_interval]))`, telemetry.MetricModelCallDuration+"_count"),
				"{{provider}}"}}},
		{title: "Attempts that are made again", unit: "reqps", description: "By provider and reason of the failure.",
			queries: []query{perSecond(telemetry.MetricRetries, telemetry.LabelProvider, telemetry.LabelReason)}},
		{title: "Compactions", unit: "reqps", description: "By provider and result.",
			queries: []query{perSecond(telemetry.MetricCompactions, telemetry.LabelProvider, telemetry.LabelResult)}},
	}}
}

// work is what generation pods do.
func work() row {
	return row{"Generation pods and tools", []panel{
		{title: "Attempts under way", unit: "short", description: "In all generation pods together.",
			queries: []query{summed(telemetry.MetricAttemptsRunning, "attempts")}},
		{title: "Attempts that end", unit: "reqps",
			description: "Lost: the pod disappeared. Abandoned: superseded by a newer attempt.",
			queries:     []query{perSecond(telemetry.MetricAttempts, telemetry.LabelAction, telemetry.LabelOutcome)}},
		{title: "Attempts lost in a quarter of an hour", unit: "short", alert: new(10.0),
			description: "ParleyPodsAreLost fires beyond the line.",
			queries:     []query{{`sum(increase(` + telemetry.MetricAttempts + `{outcome="Lost"}[15m]))`, "lost"}}},
		{title: "Tool calls", unit: "reqps", description: "mcp: tools of MCP servers. client: tools of clients.",
			queries: []query{perSecond(telemetry.MetricToolCalls, telemetry.LabelTool, telemetry.LabelOutcome)}},
		{title: "Tool calls take", unit: "s", description: "The 95th percentile. advisor: a call of another model.",
			queries: []query{quantile(.95, telemetry.MetricToolCallDuration, telemetry.LabelTool)}},
		{title: "Size of tools' results", unit: "bytes", description: "As the model gets them.",
			queries: []query{quantile(.95, telemetry.MetricToolResultSize, telemetry.LabelTool)}},
		{title: "Recordings that were lost", unit: "reqps", description: "Of model calls, while debugging is on.",
			queries: []query{perSecond(telemetry.MetricLostRecordings, telemetry.LabelReason)}},
	}}
}

// streams are how people follow along.
func streams() row {
	return row{"Streams", []panel{
		{title: "Streams that clients follow", unit: "short", description: "At all gateways, and at all relays behind them.",
			queries: []query{summed(telemetry.MetricStreamsOpen, "gateways"),
				summed(telemetry.MetricRelayReaders, "relays")}},
		{title: "Streams that begin and end", unit: "reqps",
			description: "Ends by reason, as docs/reference/stream.md explains them.",
			queries: []query{perSecond(telemetry.MetricStreamsOpened).called("begun"),
				perSecond(telemetry.MetricStreamsEnded, telemetry.LabelReason)}},
		{title: "Streams that were refused", unit: "reqps", description: "By gateways with a reason, and by relays.",
			queries: []query{perSecond(telemetry.MetricRefusals, telemetry.LabelReason).called("gateway"),
				perSecond(telemetry.MetricRelayRefused).called("relay")}},
		{title: "Reads from relays that fail", unit: "reqps", alert: new(.5),
			description: "Streams repeat them once a second. ParleyLivePartsAreMissing fires beyond the line.",
			queries:     []query{perSecond(telemetry.MetricRelayFailures).called("failed")}},
		{title: "Live parts in relays", unit: "bytes", description: "What the relays hold in memory.",
			queries: []query{summed(telemetry.MetricRelayHeld, "held")}},
		{title: "Live parts that were dropped", unit: "reqps", description: "Replies are not affected.",
			queries: []query{perSecond(telemetry.MetricDroppedParts, telemetry.LabelBy)}},
	}}
}
