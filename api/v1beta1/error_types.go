// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strings"
	"time"
)

// ErrorReason is why a turn failed. The same words are used in ChatMessage.spec.generation.error.reason, in
// Chat.status.lastError.reason and as the reason of the Stalled and Ready conditions. docs/reference/errors.md says of
// each what it means and what to do.
// +kubebuilder:validation:Enum=AuthenticationFailed;PermissionDenied;UsageLimitReached;RateLimited;Overloaded;ProviderUnavailable;ProviderTimeout;ProviderDisabled;TLSFailed;RequestRejected;ModelNotFound;HistoryRejected;ContentFiltered;ContextTooLong;ProviderError;EmptyReply;ReplyFailed;UnknownError;Canceled;APIKeyMissing;ModelConfigNotFound;ModelConfigDisabled;ModelConfigNotAllowed;ChatClassNotFound;ModelConfigInvalid;OutputSchemaInvalid;OutputInvalid;ConfigMapNotFound;HistoryInconsistent;AttemptsExhausted;GenerationPodLost;ResultNameConflict;StateInvalid;ParentNotFound;SubChatLimitExceeded;BudgetReached;ModelPriceMissing;InternalError
type ErrorReason string

// Errors of a call of a model that may pass by themselves: retryable, unless the provider says that they are not.
const (
	// ErrorRateLimited surfaces when the provider limits the rate of requests (429).
	ErrorRateLimited ErrorReason = "RateLimited"
	// ErrorOverloaded surfaces when the provider has no capacity (529, or any status with a text that says so).
	ErrorOverloaded ErrorReason = "Overloaded"
	// ErrorProviderUnavailable surfaces when the provider cannot be reached, the connection is lost, or the reply ends
	// before its end (connection and name resolution errors, 408, 409, 502, 503, 504).
	ErrorProviderUnavailable ErrorReason = "ProviderUnavailable"
	// ErrorProviderTimeout surfaces when the provider sends nothing for so long that the call was given up.
	ErrorProviderTimeout ErrorReason = "ProviderTimeout"
	// ErrorProviderError surfaces when the provider says that it failed itself (500).
	ErrorProviderError ErrorReason = "ProviderError"
	// ErrorEmptyReply surfaces when the reply ends without text and without a tool call.
	ErrorEmptyReply ErrorReason = "EmptyReply"
	// ErrorReplyFailed surfaces when the provider ends the reply with a finish reason that says that it failed, such as a
	// malformed call, or with one that is not known.
	ErrorReplyFailed ErrorReason = "ReplyFailed"
)

// Errors of a call of a model that the same call would meet again: someone must change something. Never retryable, but
// for RequestRejected and UnknownError of which the provider says that they pass.
const (
	// ErrorAuthenticationFailed surfaces when the provider refuses the API key (401), or the workload identity of the pod
	// could not log in.
	ErrorAuthenticationFailed ErrorReason = "AuthenticationFailed"
	// ErrorPermissionDenied surfaces when the key is valid but may not do this (403).
	ErrorPermissionDenied ErrorReason = "PermissionDenied"
	// ErrorUsageLimitReached surfaces when the account's quota or credit is used up (402, insufficient_quota).
	ErrorUsageLimitReached ErrorReason = "UsageLimitReached"
	// ErrorProviderDisabled surfaces when the provider has disabled the account, the organization or its API.
	ErrorProviderDisabled ErrorReason = "ProviderDisabled"
	// ErrorTLSFailed surfaces when no trusted connection can be made: an unknown or expired certificate, one of another
	// host, or a server that does not speak TLS.
	ErrorTLSFailed ErrorReason = "TLSFailed"
	// ErrorModelNotFound surfaces when the provider does not know the model, or does not let the key use it.
	ErrorModelNotFound ErrorReason = "ModelNotFound"
	// ErrorRequestRejected surfaces when the provider rejects the request (400, 404, 422): a setting that it does not
	// take, or a baseURL that leads elsewhere.
	ErrorRequestRejected ErrorReason = "RequestRejected"
	// ErrorHistoryRejected surfaces when the provider finds that the conversation does not fit together, such as a tool
	// call without a result.
	ErrorHistoryRejected ErrorReason = "HistoryRejected"
	// ErrorContentFiltered surfaces when the provider does not answer this content.
	ErrorContentFiltered ErrorReason = "ContentFiltered"
	// ErrorContextTooLong surfaces when the conversation no longer fits the model's context window, or is longer than
	// the provider takes at once (413).
	ErrorContextTooLong ErrorReason = "ContextTooLong"
	// ErrorUnknown surfaces for an error of the call that Parley does not know.
	ErrorUnknown ErrorReason = "UnknownError"
	// ErrorCanceled surfaces when Parley itself ended the call. An interrupted turn does not fail: this is the error of
	// other calls.
	ErrorCanceled ErrorReason = "Canceled"
)

// Errors of the chat, its configuration or the operator. Never retryable.
const (
	// ErrorAPIKeyMissing surfaces when the Secret or its key that apiKey.secretKeyRef names does not exist.
	ErrorAPIKeyMissing ErrorReason = "APIKeyMissing"
	// ErrorModelConfigNotFound surfaces when the ChatModelConfig does not exist, or none is the namespace's default.
	ErrorModelConfigNotFound ErrorReason = "ModelConfigNotFound"
	// ErrorChatClassNotFound surfaces when the ChatClass that the chat names does not exist.
	ErrorChatClassNotFound ErrorReason = "ChatClassNotFound"
	// ErrorModelConfigNotAllowed surfaces when the ChatClass does not let the ChatModelConfig answer that is named, or
	// that is the namespace's default.
	ErrorModelConfigNotAllowed ErrorReason = "ModelConfigNotAllowed"
	// ErrorModelConfigDisabled surfaces when spec.disabled takes the ChatModelConfig that is named out of use.
	ErrorModelConfigDisabled ErrorReason = "ModelConfigDisabled"
	// ErrorModelConfigInvalid surfaces when the ChatModelConfig cannot be used as it is.
	ErrorModelConfigInvalid ErrorReason = "ModelConfigInvalid"
	// ErrorConfigMapNotFound surfaces when a ConfigMap that instructionsFrom or skillsFrom of the chat names, or its key,
	// does not exist, and the entry is not optional.
	ErrorConfigMapNotFound ErrorReason = "ConfigMapNotFound"
	// ErrorOutputSchemaInvalid surfaces when the schema of the output is no JSON Schema, or too long.
	ErrorOutputSchemaInvalid ErrorReason = "OutputSchemaInvalid"
	// ErrorOutputInvalid surfaces when the answer does not match the schema of the output after three tries.
	ErrorOutputInvalid ErrorReason = "OutputInvalid"
	// ErrorHistoryInconsistent surfaces when a committed message is missing, so that no prompt can be built.
	ErrorHistoryInconsistent ErrorReason = "HistoryInconsistent"
	// ErrorAttemptsExhausted surfaces when generation pods were lost too often in one step.
	ErrorAttemptsExhausted ErrorReason = "AttemptsExhausted"
	// ErrorGenerationPodLost is the reason of a retry after the generation pod of an attempt was lost, or did not start.
	// No turn fails by it.
	ErrorGenerationPodLost ErrorReason = "GenerationPodLost"
	// ErrorResultNameConflict surfaces when a message that the generation pod did not create has the name of the result of
	// an attempt. It is the reason of a retry, and the error of a turn when that was its last attempt.
	ErrorResultNameConflict ErrorReason = "ResultNameConflict"
	// ErrorStateInvalid surfaces when the chat's status was changed by someone else into a combination that must not
	// exist.
	ErrorStateInvalid ErrorReason = "StateInvalid"
	// ErrorParentNotFound surfaces when the chat that parentRef names does not exist.
	ErrorParentNotFound ErrorReason = "ParentNotFound"
	// ErrorSubChatLimitExceeded surfaces when the root chat allows no more sub-chats, or none so deep.
	ErrorSubChatLimitExceeded ErrorReason = "SubChatLimitExceeded"
	// ErrorBudgetReached surfaces when a chat, or the family of a chat above it, has cost as much as limits.budget allows.
	// Its turn waits until the budget is raised.
	ErrorBudgetReached ErrorReason = "BudgetReached"
	// ErrorModelPriceMissing surfaces when a budget cannot be kept, since the model has no prices in its currency. The
	// turn waits for them.
	ErrorModelPriceMissing ErrorReason = "ModelPriceMissing"
	// ErrorInternal surfaces for a fault of Parley itself.
	ErrorInternal ErrorReason = "InternalError"
)

// MaxRetryAfter is the longest wait that a GenerationError tells. A provider that asks for more is asked again after
// this, so that a wrong clock or header there cannot put a chat off for days.
const MaxRetryAfter = time.Hour

// GenerationError says why an attempt failed, in words that a person can act on. It never holds a provider's raw
// error, which can contain the API key or the prompt.
// +kubebuilder:validation:XValidation:rule="!has(self.retryAfterSeconds) || (has(self.retryable) && self.retryable)",message="retryAfterSeconds goes with retryable: true"
type GenerationError struct {
	// reason is the class of the error.
	// +required
	Reason ErrorReason `json:"reason"`

	// message says what is wrong, and where.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// advice says what to do about it, once Parley does not continue by itself.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Advice string `json:"advice,omitempty"`

	// provider that answered, such as openai.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Provider string `json:"provider,omitempty"`

	// statusCode is the HTTP status of the provider's answer, when there was one.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999
	// +optional
	StatusCode int32 `json:"statusCode,omitempty"`

	// contextLimit is the number of tokens that the model's context holds,
	// if the provider said so when it refused one as too long.
	// +kubebuilder:validation:Minimum=1000
	// +kubebuilder:validation:Maximum=100000000
	// +optional
	ContextLimit int64 `json:"contextLimit,omitempty"`

	// retryable is whether the same call may succeed later, with nothing changed. Default false.
	// +optional
	Retryable bool `json:"retryable,omitempty"`

	// retryAfterSeconds is how long the provider asked to wait before the same call is made again, rounded up to a whole
	// second; an hour stands for everything longer. Unset: it did not say. Only with retryable.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	RetryAfterSeconds *int32 `json:"retryAfterSeconds,omitempty"`
}

// Text is the message and the advice, as people read them together when nothing continues by itself.
func (e *GenerationError) Text() string {
	between := ". "
	if e.Message == "" || e.Advice == "" {
		between = ""
	} else if strings.ContainsAny(e.Message[len(e.Message)-1:], ".!?") || strings.HasSuffix(e.Message, "…") {
		between = " "
	}
	return e.Message + between + e.Advice
}

// RetryAfter is how long the provider asked to wait, at most MaxRetryAfter; 0 if it did not say.
func (e *GenerationError) RetryAfter() time.Duration {
	if e.RetryAfterSeconds == nil {
		return 0
	}
	return time.Duration(*e.RetryAfterSeconds) * time.Second
}
