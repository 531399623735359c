// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ErrorReason is why a turn failed. The same words are used in ChatMessage.spec.generation.error.reason, in
// Chat.status.lastError.reason and as the reason of the Stalled and Ready conditions.
// +kubebuilder:validation:Enum=AuthenticationFailed;PermissionDenied;UsageLimitReached;RateLimited;Overloaded;ProviderUnavailable;RequestRejected;ContextTooLong;ProviderError;APIKeyMissing;ModelConfigNotFound;ModelConfigInvalid;HistoryBroken;AttemptsExhausted;StateInvalid;ParentNotFound;FamilyLimitExceeded;InternalError
type ErrorReason string

const (
	// ErrorAuthenticationFailed surfaces when the provider refuses the API key (401).
	ErrorAuthenticationFailed ErrorReason = "AuthenticationFailed"
	// ErrorPermissionDenied surfaces when the key is valid but may not use the model (403).
	ErrorPermissionDenied ErrorReason = "PermissionDenied"
	// ErrorUsageLimitReached surfaces when the account's quota or credit is used up (402, insufficient_quota).
	ErrorUsageLimitReached ErrorReason = "UsageLimitReached"
	// ErrorRateLimited surfaces when the provider limits the rate of requests (429).
	ErrorRateLimited ErrorReason = "RateLimited"
	// ErrorOverloaded surfaces when the provider has no capacity (529).
	ErrorOverloaded ErrorReason = "Overloaded"
	// ErrorProviderUnavailable surfaces when the provider cannot be reached or the stream breaks off (connection
	// errors, 408, 502, 503, 504).
	ErrorProviderUnavailable ErrorReason = "ProviderUnavailable"
	// ErrorRequestRejected surfaces when the provider rejects the request (400, 404, 422): an unknown model, a setting
	// that it does not take.
	ErrorRequestRejected ErrorReason = "RequestRejected"
	// ErrorContextTooLong surfaces when the conversation no longer fits the model's context window.
	ErrorContextTooLong ErrorReason = "ContextTooLong"
	// ErrorProviderError surfaces for every other error of the provider (500).
	ErrorProviderError ErrorReason = "ProviderError"
	// ErrorAPIKeyMissing surfaces when the Secret or its key that apiKey.secretKeyRef names does not exist.
	ErrorAPIKeyMissing ErrorReason = "APIKeyMissing"
	// ErrorModelConfigNotFound surfaces when the ChatModelConfig does not exist, or none is the namespace's default.
	ErrorModelConfigNotFound ErrorReason = "ModelConfigNotFound"
	// ErrorModelConfigInvalid surfaces when the ChatModelConfig cannot be used as it is.
	ErrorModelConfigInvalid ErrorReason = "ModelConfigInvalid"
	// ErrorHistoryBroken surfaces when a committed message is missing, so that no prompt can be built.
	ErrorHistoryBroken ErrorReason = "HistoryBroken"
	// ErrorAttemptsExhausted surfaces when generation pods were lost too often in one step.
	ErrorAttemptsExhausted ErrorReason = "AttemptsExhausted"
	// ErrorStateInvalid surfaces when the chat's status was changed by somebody else into a combination that must not exist.
	ErrorStateInvalid ErrorReason = "StateInvalid"
	// ErrorParentNotFound surfaces when the chat that parentRef names does not exist.
	ErrorParentNotFound ErrorReason = "ParentNotFound"
	// ErrorFamilyLimitExceeded surfaces when the root chat allows no more sub-chats, or none so deep.
	ErrorFamilyLimitExceeded ErrorReason = "FamilyLimitExceeded"
	// ErrorInternal surfaces for a fault of Parley itself.
	ErrorInternal ErrorReason = "InternalError"
)

// GenerationError says why an attempt failed, in words that a person can act on. It never holds a provider's raw
// error, which can contain the API key or the prompt.
type GenerationError struct {
	// reason is the class of the error.
	// +required
	Reason ErrorReason `json:"reason"`

	// message says what is wrong, where, and what to do.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// provider that answered, such as openai.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Provider string `json:"provider,omitempty"`

	// statusCode is the HTTP status of the provider's answer, when there was one.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999
	// +optional
	StatusCode int32 `json:"statusCode,omitempty"`
}
