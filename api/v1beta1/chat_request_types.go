// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations on a Chat that ask for something once: each new value is one request. Any value will do, such as a time.
const (
	// AnnotationInterrupt stops the turn under way and keeps what was said so far.
	AnnotationInterrupt = "parley.dev/interrupt"
	// AnnotationClear begins a new context: the model sees nothing of what came before.
	AnnotationClear = "parley.dev/clear"
	// AnnotationCompact replaces what the model sees of the conversation by a summary.
	AnnotationCompact = "parley.dev/compact"
	// AnnotationTitle has a model write another title, during the next reply.
	AnnotationTitle = "parley.dev/title"
	// AnnotationRefreshContext has what the workspace says about how to work in it read again, with the results of the
	// next calls that work there.
	AnnotationRefreshContext = "parley.dev/refresh-context"
)

// RequestKind is what an annotation asks for.
// +kubebuilder:validation:Enum=Interrupt;Clear;Compact;Title;RefreshContext
type RequestKind string

const (
	// RequestInterrupt is asked for with the annotation parley.dev/interrupt.
	RequestInterrupt RequestKind = "Interrupt"
	// RequestClear is asked for with the annotation parley.dev/clear.
	RequestClear RequestKind = "Clear"
	// RequestCompact is asked for with the annotation parley.dev/compact.
	RequestCompact RequestKind = "Compact"
	// RequestTitle is asked for with the annotation parley.dev/title.
	RequestTitle RequestKind = "Title"
	// RequestRefreshContext is asked for with the annotation parley.dev/refresh-context.
	RequestRefreshContext RequestKind = "RefreshContext"
)

// requestAnnotations are the annotations that ask for something.
var requestAnnotations = map[RequestKind]string{
	RequestInterrupt:      AnnotationInterrupt,
	RequestClear:          AnnotationClear,
	RequestCompact:        AnnotationCompact,
	RequestTitle:          AnnotationTitle,
	RequestRefreshContext: AnnotationRefreshContext,
}

// RequestKinds lists what can be asked for, in the order in which requests that come together are acted on.
func RequestKinds() []RequestKind {
	return []RequestKind{RequestInterrupt, RequestClear, RequestCompact, RequestTitle, RequestRefreshContext}
}

// Annotation that asks for it.
func (k RequestKind) Annotation() string { return requestAnnotations[k] }

// RequestOutcome is what became of a request.
// +kubebuilder:validation:Enum=Done;Refused
type RequestOutcome string

const (
	// RequestDone means that the chat has done, or has begun to do, what was asked.
	RequestDone RequestOutcome = "Done"
	// RequestRefused means that the chat was in no state to do it; message says why. The same token is not tried again.
	RequestRefused RequestOutcome = "Refused"
)

// HandledRequest is a request that an annotation made.
type HandledRequest struct {
	// kind of the request.
	// +required
	Kind RequestKind `json:"kind"`

	// token is the annotation's value, cut at 128 bytes.
	// +kubebuilder:validation:MaxLength=128
	// +required
	Token string `json:"token"`

	// outcome is what became of it.
	// +required
	Outcome RequestOutcome `json:"outcome"`

	// message says why it was refused.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`

	// time when it was acted on.
	// +required
	Time metav1.Time `json:"time"`
}
