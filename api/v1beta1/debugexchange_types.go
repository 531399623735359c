// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DebugFailure is why an HTTP exchange has no whole response.
// +kubebuilder:validation:Enum=NoResponse;Incomplete;Canceled
type DebugFailure string

const (
	// DebugNoResponse means that no response came: the connection was refused, reset or timed out.
	DebugNoResponse DebugFailure = "NoResponse"
	// DebugIncomplete means that the body broke off.
	DebugIncomplete DebugFailure = "Incomplete"
	// DebugCanceled means that Parley gave the request up.
	DebugCanceled DebugFailure = "Canceled"
)

// DebugExchange is an HTTP request and its response. Secrets are redacted in every part of it.
type DebugExchange struct {
	// number counts the exchanges of the attempt, from 1.
	// +kubebuilder:validation:Minimum=1
	// +required
	Number int32 `json:"number"`

	// method of the request.
	// +kubebuilder:validation:MaxLength=16
	// +required
	Method string `json:"method"`

	// url of the request, without user.
	// +kubebuilder:validation:MaxLength=4096
	// +required
	URL string `json:"url"`

	// requestHeaders are the headers that Parley sets.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	RequestHeaders []DebugHeader `json:"requestHeaders,omitempty"`

	// requestBody if it is JSON of at most 50000 bytes, else a remark in brackets.
	// +kubebuilder:validation:MaxLength=120000
	// +optional
	RequestBody string `json:"requestBody,omitempty"`

	// statusCode of the response; absent if none came.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999
	// +optional
	StatusCode int32 `json:"statusCode,omitempty"`

	// responseHeaders of the response.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	ResponseHeaders []DebugHeader `json:"responseHeaders,omitempty"`

	// responseBody is the body up to where it was read: JSON, server-sent events or lines of JSON, the latter two cut
	// after 50000 bytes; else a remark in brackets.
	// +kubebuilder:validation:MaxLength=120000
	// +optional
	ResponseBody string `json:"responseBody,omitempty"`

	// failure is why there is no whole response.
	// +optional
	Failure DebugFailure `json:"failure,omitempty"`

	// startedAt is when the request was sent.
	// +required
	StartedAt metav1.MicroTime `json:"startedAt"`

	// headersMilliseconds is how long the head of the response took.
	// +kubebuilder:validation:Minimum=0
	// +optional
	HeadersMilliseconds int64 `json:"headersMilliseconds,omitempty"`

	// durationMilliseconds is how long it took until the body was read, or given up.
	// +kubebuilder:validation:Minimum=0
	// +optional
	DurationMilliseconds int64 `json:"durationMilliseconds,omitempty"`
}

// DebugHeader is an HTTP header with one of its values.
type DebugHeader struct {
	// name of the header.
	// +kubebuilder:validation:MaxLength=256
	// +required
	Name string `json:"name"`

	// value of the header, cut at 1024 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Value string `json:"value,omitempty"`
}
