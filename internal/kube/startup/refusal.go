// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package startup recognizes requests that the API server refuses only because its admission plugins are starting, and
// has clients retry them. That happens after a restart of the API server, and after policies were installed.
package startup

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API server gives no reason that programs could read, so these are its messages. All are from k8s.io/apiserver,
// pkg/admission/plugin. What differs between policies is left out.
const (
	// notReady ends what a plugin answers that has not read its own objects: policy/generic/plugin.go,
	// webhook/generic/webhook.go, namespace/lifecycle/admission.go.
	notReady = " is forbidden: not yet ready to handle request"
	// paramKind, followed by the kind and notSynced or notKnown, is what a policy answers whose parameters have not been
	// read: CollectParams in policy/generic/policy_dispatcher.go.
	paramKind = " denied request: failed to configure binding: paramKind kind `"
	notSynced = "` not yet synced to use for admission"
	notKnown  = "` not known"
	// noResource is what a policy answers whose kind of parameters is not served: policy/generic/policy_source.go. Only
	// Parley's own kinds are certain to come, as they are installed with the policies.
	noResource = " denied request: failed to configure policy: failed to find resource referenced by paramKind: " +
		"'parley.dev/"
	// delayed ends what a mutating policy answers about a kind that was just installed: policy/mutating/dispatcher.go.
	delayed = "There can be a delay between when CustomResourceDefinitions are created and when they are available."
)

// IsRefusal reports whether the API server refused a request only because its admission plugins are starting. The same
// request passes within seconds.
func IsRefusal(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && isRefusal(status.Status())
}

// isRefusalCode reports whether such a refusal can have the HTTP status. A policy that gives no reason refuses with
// 422, and so does one that is not ready; plugins refuse with 403, and mutating policies with 503.
func isRefusalCode(code int) bool {
	return code == http.StatusForbidden || code == http.StatusUnprocessableEntity || code == http.StatusServiceUnavailable
}

func isRefusal(status metav1.Status) bool {
	message := status.Message
	return isRefusalCode(int(status.Code)) && (strings.HasSuffix(message, notReady) ||
		strings.HasSuffix(message, delayed) || strings.Contains(message, noResource) || isUnreadKind(message))
}

func isUnreadKind(message string) bool {
	return strings.Contains(message, paramKind) &&
		(strings.HasSuffix(message, notSynced) || strings.HasSuffix(message, notKnown))
}
