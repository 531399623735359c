// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/internal/gateway/refusal"
)

// refused is a refusal as the answer of an operation.
type refused struct{ why *refusal.Error }

func (r refused) Error() string { return r.why.Message }

// GetStatus is the status of the answer.
func (r refused) GetStatus() int { return r.why.Status }

// GetHeaders are those of the answer.
func (r refused) GetHeaders() http.Header {
	h := http.Header{}
	r.why.SetHeaders(h)
	return h
}

// ContentType of the answer.
func (refused) ContentType(string) string { return "application/json" }

// MarshalJSON is the body of the answer.
func (r refused) MarshalJSON() ([]byte, error) {
	return json.Marshal(r.why.Body())
}

// Schema of the body.
func (refused) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[refusal.Body]())
}

// useRefusals makes huma refuse requests as the rest of the gateway does, in the whole process.
var useRefusals = sync.OnceFunc(func() { huma.NewError = invalid })

// invalid is the refusal of a request that cannot be read. It contains the first few errors.
func invalid(status int, message string, faults ...error) huma.StatusError {
	const most = 4
	messages := make([]string, 0, most)
	for _, fault := range faults[:min(len(faults), most)] {
		messages = append(messages, fault.Error())
	}
	if len(messages) > 0 {
		message += ": " + strings.Join(messages, "; ")
	}
	reason := refusal.BadRequest
	switch status {
	case http.StatusUnprocessableEntity:
		status = http.StatusBadRequest // The gateway has one status for invalid requests.
	case http.StatusRequestEntityTooLarge:
		reason = refusal.TooLarge
	case http.StatusUnsupportedMediaType:
		reason = refusal.UnsupportedMediaType
		message = "send the body as JSON, with the header Content-Type: application/json"
	}
	return refused{&refusal.Error{Status: status, Reason: reason, Message: message}}
}

func badRequest(format string, args ...any) error {
	return refused{&refusal.Error{Status: http.StatusBadRequest, Reason: refusal.BadRequest,
		Message: fmt.Sprintf(format, args...)}}
}

// withRole adds the ClusterRole that allows the operation, if RBAC refused it.
func withRole(no *refusal.Error, op huma.Operation) error {
	role := "parley-chat-user"
	switch {
	// Admission policies answer with the same status and reason, and a role does not help against them.
	case no.Status != http.StatusForbidden || !strings.Contains(no.Message, ` is forbidden: User "`):
		return refused{no}
	case op.OperationID == listNamespaces:
		return refused{no} // Roles of the cluster allow it.
	case op.OperationID == decideCall:
		role = "parley-tool-approver"
	case op.OperationID == putConfiguration:
		for _, k := range configurationKinds {
			if strings.Contains(no.Message, `"`+k.resource+`"`) {
				role = k.role
			}
		}
	case op.Method == http.MethodGet:
		role = "parley-chat-viewer"
	}
	no.Message += ": ask for the ClusterRole " + role
	return refused{no}
}

// from converts an error of the API server, with its own status, reason and message.
func from(ctx context.Context, err error) *refusal.Error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code < http.StatusBadRequest {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.APIServerUnavailable,
			RetryAfter: time.Second, Message: "the API server does not answer, try again", Cause: err}
	}
	answer := status.Status()
	e := &refusal.Error{Status: int(answer.Code), Reason: string(answer.Reason), Message: answer.Message}
	if e.Status == http.StatusUnauthorized {
		e.Reason, e.Message = refusal.Unauthorized, "the API server does not take this token: it may have expired"
	}
	if e.Reason == "" {
		e.Reason = strings.ReplaceAll(http.StatusText(e.Status), " ", "")
	}
	if seconds, wait := apierrors.SuggestsClientDelay(err); wait {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}
