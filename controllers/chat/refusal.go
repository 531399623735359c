// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/internal/clip"
)

// refusalLasts is how long a refusal is taken for true before the API server is asked again: 10 s. Nothing tells when a
// quota, a policy or a right has changed.
const refusalLasts = 10 * time.Second

// maxRefusal is the most characters of the API server's words.
const maxRefusal = 500

// refusals are the HTTP statuses with which the API server refuses an object because of what it is, or because a
// policy, a quota or a webhook is against it. Those of a server in trouble are not among them: they pass. A webhook
// that fails is said with one of those.
var refusals = []int32{
	http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge,
	http.StatusUnprocessableEntity,
}

// webhookFailed is part of what the API server says with status 500 when a webhook that has to be asked cannot be.
const webhookFailed = "failed calling webhook"

// isRefusal reports whether the API server's answer is a refusal that lasts.
func isRefusal(status metav1.Status) bool {
	return slices.Contains(refusals, status.Code) ||
		status.Code == http.StatusInternalServerError && strings.Contains(status.Message, webhookFailed)
}

// refusalOf is what the API server says against the object that was to be created under the name;
// empty for another error.
func refusalOf(err error, name string) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !isRefusal(status.Status()) {
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
	return clip.Ellipsis(words, maxRefusal)
}

// podRefusedError says that the API server refuses a generation pod, or what it needs.
type podRefusedError struct {
	// words are the API server's.
	words string
	// until is when it is asked again.
	until time.Time
}

// Error implements error.
func (e *podRefusedError) Error() string {
	return "the API server refuses a generation pod: " + e.words
}
