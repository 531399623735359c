// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package denial distinguishes refusals of the API server that last from those that pass by themselves.
package denial

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/internal/kube/startup"
	"parley.dev/parley/internal/text/clip"
)

// Lasts is how long a denial is taken for true before the API server is asked again: 10 s. Nothing tells when a quota,
// a policy or a right has changed.
const Lasts = 10 * time.Second

// maxWords is the most characters of the API server's words.
const maxWords = 500

// codes are the HTTP statuses with which the API server refuses an object because of what it is, or because a policy, a
// quota or a webhook is against it. Those of a server in trouble are not among them: they pass. A webhook that fails is
// said with one of those.
var codes = []int32{
	http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge,
	http.StatusUnprocessableEntity,
}

// webhookFailed is part of what the API server says with status 500 when a webhook that has to be asked cannot be.
const webhookFailed = "failed calling webhook"

func lasts(status metav1.Status) bool {
	return slices.Contains(codes, status.Code) || isWebhookFailure(status)
}

func isWebhookFailure(status metav1.Status) bool {
	return status.Code == http.StatusInternalServerError && strings.Contains(status.Message, webhookFailed)
}

// IsWebhookFailure reports whether the API server refused a write because it could not call a webhook. The webhook may
// be back soon.
func IsWebhookFailure(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && isWebhookFailure(status.Status())
}

// Of is what the API server says against the object that was to be created under the name; empty for another error, and
// where the namespace goes: there is no one left to tell.
func Of(err error, name string) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !lasts(status.Status()) || startup.IsRefusal(err) || IsNamespaceGone(err) {
		return ""
	}
	words := strings.Join(strings.Fields(status.Status().Message), " ")
	// The name is another one each time.
	if before, after, ok := strings.Cut(words, ": "); ok && strings.Contains(before, name) {
		words = after
	}
	if words == "" {
		words = string(status.Status().Reason)
	}
	return clip.Ellipsis(words, maxWords)
}

// IsNamespaceGone reports whether the API server refused a write because its namespace is being deleted, or is gone. No
// object of the namespace will remain.
func IsNamespaceGone(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Group == "" && details.Kind == "namespaces"
}

// noRight is part of what the API server says if the caller lacks a right: forbiddenMessage of k8s.io/apiserver,
// pkg/endpoints/handlers/responsewriters/errors.go.
const noRight = `" cannot `

// IsRemoval reports whether a request failed because something was removed that it needs: the kind or the namespace of
// its object, or the service account or a right of the caller. All of them go while Parley is uninstalled.
func IsRemoval(err error) bool {
	isKindGone := meta.IsNoMatchError(err) ||
		apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	return isKindGone || IsNamespaceGone(err) || apierrors.IsUnauthorized(err) ||
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), noRight)
}
