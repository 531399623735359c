// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package startup_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/internal/kube/startup"
)

// refused is an answer of the API server.
func refused(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

// The messages are those of Kubernetes 1.37; test/admission provokes the first two on a real API server.
var passing = map[string]error{
	"parameters that are not read": refused(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, notSynced),
	"parameters whose kind is not served": refused(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		`chats.parley.dev "hello" is forbidden: ValidatingAdmissionPolicy 'parley-chat-classes' denied request: `+
			"failed to configure policy: failed to find resource referenced by paramKind: "+
			"'parley.dev/v1beta1, Kind=ChatClass'"),
	"parameters that are not known": refused(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		`chats.parley.dev "hello" is forbidden: ValidatingAdmissionPolicy 'parley-chat-classes' with binding `+
			"'parley-chat-classes' denied request: failed to configure binding: paramKind kind "+
			"`&ParamKind{APIVersion:parley.dev/v1beta1,Kind:ChatClass,}` not known"),
	"parameters of a mutating policy": refused(http.StatusForbidden, metav1.StatusReasonForbidden,
		"policy 'stamp' with binding 'stamp' denied request: failed to configure binding: paramKind kind "+
			"`&ParamKind{APIVersion:parley.dev/v1beta1,Kind:ChatClass,}` not yet synced to use for admission"),
	"a plugin that is not ready": refused(http.StatusForbidden, metav1.StatusReasonForbidden,
		`pods "parley-generation-x7k2p" is forbidden: not yet ready to handle request`),
	"a kind that was just installed": refused(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"Resource kind parley.dev/v1beta1, Kind=Chat not found. There can be a delay between when "+
			"CustomResourceDefinitions are created and when they are available."),
}

const notSynced = `chats.parley.dev "hello" is forbidden: ValidatingAdmissionPolicy 'parley-chat-classes' with binding ` +
	"'parley-chat-classes' denied request: failed to configure binding: paramKind kind " +
	"`&ParamKind{APIVersion:parley.dev/v1beta1,Kind:ChatClass,}` not yet synced to use for admission"

var chats = schema.GroupResource{Group: "parley.dev", Resource: "chats"}

var lasting = map[string]error{
	"a missing right": apierrors.NewForbidden(chats, "hello",
		errors.New(`user "eve" cannot create resource "chats" in API group "parley.dev" in the namespace "demo"`)),
	"a policy": refused(http.StatusForbidden, metav1.StatusReasonForbidden,
		`chats.parley.dev "hello" is forbidden: ValidatingAdmissionPolicy 'parley-chat-classes' with binding `+
			"'parley-chat-classes' denied request: ChatClass small does not let its chats set spec.tools"),
	"a policy with the same words": refused(http.StatusForbidden, metav1.StatusReasonForbidden,
		`chats.parley.dev "hello" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: `+
			"the review is not yet ready to handle request"),
	"a policy about a foreign kind that is missing": refused(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		`pods "x" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: `+
			"failed to find resource referenced by paramKind: 'example.com/v1, Kind=Limit'"),
	"a policy without its parameters": refused(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		`chats.parley.dev "hello" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: `+
			"failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"),
	"a quota": apierrors.NewForbidden(chats, "hello", errors.New("exceeded quota: small, requested: count/chats=1")),
	"an invalid object": refused(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		`Chat.parley.dev "hello" is invalid: spec.limits.maxSteps: Invalid value: 0`),
	"the words with another status": refused(http.StatusConflict, metav1.StatusReasonConflict, notSynced),
	"an error of the network":       errors.New("connection refused: not yet ready to handle request"),
}

func TestOnlyRefusalsOfAStartPass(t *testing.T) {
	for name, err := range passing {
		if !startup.IsRefusal(err) || !startup.IsRefusal(fmt.Errorf("creating it: %w", err)) {
			t.Errorf("%s: it is not recognized", name)
		}
	}
	for name, err := range lasting {
		if startup.IsRefusal(err) {
			t.Errorf("%s: it counts as one that passes", name)
		}
	}
	if startup.IsRefusal(nil) {
		t.Error("no error counts as one that passes")
	}
}
