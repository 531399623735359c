// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

// Metrics of the manager.
const (
	MetricChats            = "parley_chats"
	MetricWaits            = "parley_chat_waits"
	MetricOldestWait       = "parley_chat_oldest_wait_timestamp_seconds"
	MetricTurns            = "parley_turns_total"
	MetricTurnDuration     = "parley_turn_duration_seconds"
	MetricQueueWait        = "parley_queue_wait_seconds"
	MetricCapacityWait     = "parley_capacity_wait_seconds"
	MetricAttempts         = "parley_attempts_total"
	MetricStepDuration     = "parley_step_duration_seconds"
	MetricCommitLatency    = "parley_commit_latency_seconds"
	MetricRejectedMessages = "parley_rejected_messages_total"
	MetricRetries          = "parley_retries_total"
	MetricCompactions      = "parley_compactions_total"
	MetricArchivedChats    = "parley_archived_chats_total"
)

// Metrics of the gate that chats pass before they generate, in the manager.
const (
	MetricGenerating      = "parley_chats_generating"
	MetricWaiting         = "parley_chats_waiting"
	MetricGeneratingLimit = "parley_chats_generating_limit"
)

// MetricShards is of the manager, too, if there is more than one shard.
const MetricShards = "parley_manager_shards"

// MetricPoliciesMissing is of the manager, which checks it once a minute.
const MetricPoliciesMissing = "parley_admission_policies_missing"

// Metrics of generators. The manager has those of tool calls, too, for the calls that clients run, and that of refused
// results, for those that come too late.
const (
	MetricAttemptsRunning   = "parley_attempts_running"
	MetricTimeToFirstPart   = "parley_time_to_first_part_seconds"
	MetricModelCallDuration = "parley_model_call_duration_seconds"
	MetricTokens            = "parley_tokens_total"
	MetricToolCalls         = "parley_tool_calls_total"
	MetricToolCallDuration  = "parley_tool_call_duration_seconds"
	MetricToolResultSize    = "parley_tool_result_size_bytes"
	MetricRefusedResults    = "parley_refused_results_total"
	MetricDroppedParts      = "parley_relay_dropped_parts_total"
	MetricLostRecordings    = "parley_lost_recordings_total"
)

// Metrics of relays and gateways. Relays have MetricDroppedParts, too.
const (
	MetricRelayHeld     = "parley_relay_held_bytes"
	MetricRelayReaders  = "parley_relay_readers"
	MetricRelayRefused  = "parley_relay_refused_total"
	MetricStreamsOpen   = "parley_gateway_streams_open"
	MetricStreamsOpened = "parley_gateway_streams_total"
	MetricStreamsEnded  = "parley_gateway_streams_ended_total"
	MetricRefusals      = "parley_gateway_refusals_total"
	MetricRelayFailures = "parley_gateway_relay_failures_total"
)

// Values of the label reason of MetricStreamsEnded, in addition to those that the gateway sends to its client.
const (
	// StreamOver is the end of a story: the chat was deleted.
	StreamOver = "Over"
	// StreamLeft means that the client has left, or its connection was lost.
	StreamLeft = "ClientLeft"
	// StreamTooSlow means that the client took too long to accept an event.
	StreamTooSlow = "ClientTooSlow"
)

// Labels of the metrics.
const (
	LabelPhase    = "phase"
	LabelFor      = "for"
	LabelResult   = "result"
	LabelReason   = "reason"
	LabelAction   = "action"
	LabelOutcome  = "outcome"
	LabelReply    = "reply"
	LabelProvider = "provider"
	LabelModel    = "model"
	LabelKind     = "kind"
	LabelTool     = "tool"
	LabelBy       = "by"
	// LabelShard is on all metrics of a manager whose shard is one of several.
	LabelShard = "shard"
)

// Values of labels that are not enums of the API.
const (
	// Other stands for what is beyond the bound of a label.
	Other = "other"
	// NewChat is the phase of a chat that the manager has not looked at.
	NewChat = "New"
	// TurnSuperseded is the result of a turn that an edit or a deletion ended.
	TurnSuperseded = "Superseded"
	// OutcomeAbandoned is the outcome of an attempt whose result was no longer awaited.
	OutcomeAbandoned = "Abandoned"
	// ToolOfClient stands for every tool of a client, and for those that there are not; ToolOfMCP for every tool of an MCP
	// server.
	ToolOfClient = "client"
	ToolOfMCP    = "mcp"
	// Outcomes of tool calls.
	CallSucceeded   = "Succeeded"
	CallFailed      = "Failed"
	CallInterrupted = "Interrupted"
	CallDenied      = "Denied"
	CallCancelled   = "Canceled"
	// ToolError is the error.type of a tool call that failed.
	ToolError = "ToolError"
	// FenceMovedOn is why a result is refused that came too late; other reasons are those of the API server.
	FenceMovedOn = "FenceMovedOn"
	// Kinds of tokens.
	TokensInput      = "input"
	TokensOutput     = "output"
	TokensCacheRead  = "cache_read"
	TokensCacheWrite = "cache_write"
	TokensReasoning  = "reasoning"
	// Who dropped parts.
	ByGenerator = "generator"
	ByRelay     = "relay"
	// Results of compactions.
	CompactionSucceeded = "success"
	CompactionFailed    = "error"
	CompactionCancelled = "cancelled"
	// Results of archiving a chat.
	ArchiveSucceeded = "success"
	ArchiveFailed    = "error"
)

// Spans. Those of model and tool calls are named as the GenAI conventions say, by operation and model or tool.
const (
	SpanTurn = "invoke_agent"
	SpanStep = "parley.step"

	OperationInvokeAgent = "invoke_agent"
	OperationChat        = "chat"
	OperationExecuteTool = "execute_tool"
)

// Attributes of the GenAI semantic conventions, as of version 1.41 of the conventions, the last that held them all.
const (
	// AttrOperation is of invoke_agent, chat and execute_tool.
	AttrOperation = "gen_ai.operation.name"
	// AttrProvider is of invoke_agent and chat.
	AttrProvider = "gen_ai.provider.name"
	// AttrRequestModel is of invoke_agent and chat.
	AttrRequestModel = "gen_ai.request.model"
	// AttrMaxTokens is of chat.
	AttrMaxTokens = "gen_ai.request.max_tokens"
	// AttrTemperature is of chat.
	AttrTemperature = "gen_ai.request.temperature"
	// AttrTopP is of chat.
	AttrTopP = "gen_ai.request.top_p"
	// AttrTopK is of chat.
	AttrTopK = "gen_ai.request.top_k"
	// AttrPresencePenalty is of chat.
	AttrPresencePenalty = "gen_ai.request.presence_penalty"
	// AttrFrequencyPenalty is of chat.
	AttrFrequencyPenalty = "gen_ai.request.frequency_penalty"
	// AttrStream is of chat; always true.
	AttrStream = "gen_ai.request.stream"
	// AttrFinishReasons is of chat: the provider's own word, such as end_turn or MAX_TOKENS.
	AttrFinishReasons = "gen_ai.response.finish_reasons"
	// AttrTimeToFirstChunk is of chat.
	AttrTimeToFirstChunk = "gen_ai.response.time_to_first_chunk"
	// AttrConversation is of all spans: the chat's UID.
	AttrConversation = "gen_ai.conversation.id"
	// AttrInputTokens is of chat; cached ones included.
	AttrInputTokens = "gen_ai.usage.input_tokens"
	// AttrOutputTokens is of chat.
	AttrOutputTokens = "gen_ai.usage.output_tokens"
	// AttrCacheReadTokens is of chat.
	AttrCacheReadTokens = "gen_ai.usage.cache_read.input_tokens"
	// AttrCacheCreateTokens is of chat.
	AttrCacheCreateTokens = "gen_ai.usage.cache_creation.input_tokens"
	// AttrReasoningTokens is of chat.
	AttrReasoningTokens = "gen_ai.usage.reasoning.output_tokens"
	// AttrToolName is of execute_tool: the tool, mcp for one of an MCP server, or client.
	AttrToolName = "gen_ai.tool.name"
	// AttrToolType is of execute_tool.
	AttrToolType = "gen_ai.tool.type"
	// AttrToolCallID is of execute_tool.
	AttrToolCallID = "gen_ai.tool.call.id"
	// AttrAgentName is of invoke_agent.
	AttrAgentName = "gen_ai.agent.name"
	// AttrErrorType is of a failed span: the reason as in status.lastError.reason, Lost for an attempt whose pod was
	// lost, or ToolError; never the text of an error.
	AttrErrorType = "error.type"
	// AttrServerAddress is of chat.
	AttrServerAddress = "server.address"
	// AttrServerPort is of chat.
	AttrServerPort = "server.port"
)

// Attributes that hold content. They are set only where EnvCaptureContent says so.
const (
	// AttrInputMessages is of chat, with content.
	AttrInputMessages = "gen_ai.input.messages"
	// AttrOutputMessages is of chat, with content.
	AttrOutputMessages = "gen_ai.output.messages"
	// AttrSystemInstructions is of chat, with content.
	AttrSystemInstructions = "gen_ai.system_instructions"
	// AttrToolArguments is of execute_tool, with content.
	AttrToolArguments = "gen_ai.tool.call.arguments"
	// AttrToolResult is of execute_tool, with content.
	AttrToolResult = "gen_ai.tool.call.result"
)

// Attributes of Parley's own, and those of the resource.
const (
	// AttrNamespace is of invoke_agent, parley.step and the resource.
	AttrNamespace = "k8s.namespace.name"
	// AttrPod is of the resource.
	AttrPod = "k8s.pod.name"
	// AttrChat is of invoke_agent and parley.step.
	AttrChat = "parley.chat.name"
	// AttrMessage is of invoke_agent.
	AttrMessage = "parley.message.name"
	// AttrHistoryVersion is of parley.step.
	AttrHistoryVersion = "parley.history.version"
	// AttrAttempt is of parley.step.
	AttrAttempt = "parley.attempt"
	// AttrAction is of parley.step.
	AttrAction = "parley.action"
	// AttrOutcome is of parley.step, chat and execute_tool.
	AttrOutcome = "parley.outcome"
	// AttrTurnResult is of invoke_agent.
	AttrTurnResult = "parley.turn.result"
	// AttrTurnSteps is of invoke_agent.
	AttrTurnSteps = "parley.turn.steps"
)

// EnvCaptureContent is the environment variable that puts prompts, replies, tool arguments and tool results into spans
// when it is "true". It is off by default: a trace store is read by other people than those who may read a
// conversation.
const EnvCaptureContent = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
