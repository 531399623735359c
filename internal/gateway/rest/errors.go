// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/internal/gateway/refusal"
)

// refused is a refusal as the answer of an operation.
type refused struct {
	why *refusal.Error
	// byAPIServer is true for what the API server has said.
	byAPIServer bool
}

func (r refused) Error() string { return r.why.Message }

// GetStatus is the status of the answer.
func (r refused) GetStatus() int { return r.why.Status }

// GetHeaders says when to try again, and what is wanted of who is not known.
func (r refused) GetHeaders() http.Header {
	h := http.Header{}
	if r.why.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(r.why.RetryAfter.Seconds()))))
	}
	if r.why.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	return h
}

// ContentType of the answer.
func (refused) ContentType(string) string { return "application/json" }

// MarshalJSON is the body of the answer.
func (r refused) MarshalJSON() ([]byte, error) {
	return json.Marshal(refusal.Body{Status: r.why.Status, Reason: r.why.Reason, Message: r.why.Message})
}

// Schema of the body.
func (refused) Schema(r huma.Registry) *huma.Schema { return huma.SchemaFromType(r, bodyType) }

// inOurWords has huma refuse requests as the rest of the gateway does, in the whole process.
var inOurWords = sync.OnceFunc(func() { huma.NewError = unfit })

// unfit is the refusal of a request that cannot be read: of how many faults it has the first few are named.
func unfit(status int, message string, faults ...error) huma.StatusError {
	const most = 4
	said := make([]string, 0, most)
	for _, fault := range faults[:min(len(faults), most)] {
		said = append(said, fault.Error())
	}
	if len(said) > 0 {
		message += ": " + strings.Join(said, "; ")
	}
	reason := refusal.BadRequest
	switch status {
	case http.StatusUnprocessableEntity:
		status = http.StatusBadRequest // What is wrong with a request is for its author, in whichever words.
	case http.StatusRequestEntityTooLarge:
		reason = refusal.TooLarge
	case http.StatusUnsupportedMediaType:
		reason = refusal.UnsupportedMediaType
		message = "send the body as JSON, with the header Content-Type: application/json"
	}
	return refused{why: &refusal.Error{Status: status, Reason: reason, Message: message}}
}

func badRequest(format string, args ...any) error {
	return refused{why: &refusal.Error{Status: http.StatusBadRequest, Reason: refusal.BadRequest,
		Message: fmt.Sprintf(format, args...)}}
}

// withRole says which ClusterRole lets a caller do what RBAC does not.
func withRole(no refused, op huma.Operation) error {
	// Admission policies answer with the same status and reason, and a role does not help against them.
	if no.why.Status != http.StatusForbidden || !strings.Contains(no.why.Message, ` is forbidden: User "`) {
		return no
	}
	role := "parley-chat-user"
	switch {
	case op.OperationID == listNamespaces:
		return no // The cluster's own roles grant it.
	case op.OperationID == decideCall:
		role = "parley-tool-approver"
	case op.Method == http.MethodGet:
		role = "parley-chat-viewer"
	}
	why := *no.why
	why.Message += ": ask for the ClusterRole " + role
	return refused{why: &why, byAPIServer: true}
}

// from is the API server's error as an answer: its own status, reason and words.
func from(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code < http.StatusBadRequest {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return refused{why: &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.APIServerUnavailable,
			RetryAfter: time.Second, Message: "the API server does not answer, try again", Cause: err}}
	}
	said := status.Status()
	e := &refusal.Error{Status: int(said.Code), Reason: string(said.Reason), Message: said.Message}
	if e.Status == http.StatusUnauthorized {
		e.Reason, e.Message = refusal.Unauthorized, "the API server does not take this token: it may have expired"
	}
	if e.Reason == "" {
		e.Reason = strings.ReplaceAll(http.StatusText(e.Status), " ", "")
	}
	if seconds, wait := apierrors.SuggestsClientDelay(err); wait {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return refused{why: e, byAPIServer: true}
}
