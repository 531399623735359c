// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of ChatModelConfig.spec.retry.
const (
	// DefaultMaxAttempts is how often a step is tried before its turn fails: 25, about 20 minutes at the default delays.
	DefaultMaxAttempts = 25
	// DefaultInitialDelay is the wait before the second attempt; it doubles with each further one.
	DefaultInitialDelay = time.Second
	// DefaultMaxDelay is the longest wait between two attempts, unless the provider asks for a longer one.
	DefaultMaxDelay = time.Minute
	// DefaultSilenceTimeout is how long a provider may send nothing before the call is given up.
	DefaultSilenceTimeout = 10 * time.Minute
	// MaxSilenceTimeout is the longest idleTimeoutSeconds: 55 minutes.
	MaxSilenceTimeout = 3300 * time.Second
)

// RetryPolicy says how a failed attempt is tried again. A wait is never shorter than what the provider asks for.
type RetryPolicy struct {
	// maxAttempts is how often a step is tried, the first time included, before its turn fails. All models that
	// fallbacks name share it. Default 25.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxAttempts *int32 `json:"maxAttempts,omitempty"`

	// initialDelaySeconds is the wait before the second attempt, in seconds; it doubles with each further one. Default 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	InitialDelaySeconds *int32 `json:"initialDelaySeconds,omitempty"`

	// maxDelaySeconds is the longest wait between two attempts, in seconds. Default 60.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	MaxDelaySeconds *int32 `json:"maxDelaySeconds,omitempty"`
}

// RetryStatus is the next attempt at a step that failed.
type RetryStatus struct {
	// attempt is the number of the one that failed.
	// +kubebuilder:validation:Minimum=1
	// +required
	Attempt int32 `json:"attempt"`

	// action that failed, and is tried again.
	// +optional
	Action GenerationAction `json:"action,omitempty"`

	// at is when the next one begins.
	// +required
	At metav1.MicroTime `json:"at"`

	// failedAt is when the last one was found to have failed.
	// +optional
	FailedAt metav1.MicroTime `json:"failedAt,omitempty,omitzero"`

	// reason why the last one failed.
	// +required
	Reason ErrorReason `json:"reason"`

	// message says what went wrong. What to do about it is not part of it: Parley continues by itself.
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

	// modelConfig is the name of the ChatModelConfig that is asked next.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ModelConfig string `json:"modelConfig,omitempty"`
}

// MaxAttemptsOrDefault is maxAttempts, or DefaultMaxAttempts.
func (p *RetryPolicy) MaxAttemptsOrDefault() int32 {
	if p == nil || p.MaxAttempts == nil {
		return DefaultMaxAttempts
	}
	return *p.MaxAttempts
}

// InitialDelayOrDefault is initialDelaySeconds, or DefaultInitialDelay.
func (p *RetryPolicy) InitialDelayOrDefault() time.Duration {
	if p == nil || p.InitialDelaySeconds == nil {
		return DefaultInitialDelay
	}
	return time.Duration(*p.InitialDelaySeconds) * time.Second
}

// MaxDelayOrDefault is maxDelaySeconds, or DefaultMaxDelay.
func (p *RetryPolicy) MaxDelayOrDefault() time.Duration {
	if p == nil || p.MaxDelaySeconds == nil {
		return DefaultMaxDelay
	}
	return time.Duration(*p.MaxDelaySeconds) * time.Second
}
