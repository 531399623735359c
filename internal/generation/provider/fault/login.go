// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
)

// LoginError is a login by workload identity that failed, so that the model was not called. It holds no token.
type LoginError struct {
	// Identity is the account, such as client 11111111 of tenant 22222222; empty if that is not known.
	Identity string
	// Host is the token endpoint that was called; empty: none.
	Host string
	// Status is the HTTP status of its answer; 0: there was none.
	Status int
	// Code and Message are the error of its answer.
	Code, Message string
	// Problem is what is wrong where that is no refusal, and ProblemPasses whether the same login may succeed later.
	Problem       string
	ProblemPasses bool
}

func (e *LoginError) Error() string {
	return "logging in by workload identity: " + e.problem()
}

// isTemporary reports whether the same login may succeed later: the endpoint was not reached, or failed.
func (e *LoginError) isTemporary() bool {
	return e.ProblemPasses || e.Problem == "" && (e.Status == 0 || e.Status == http.StatusTooManyRequests ||
		e.Status == http.StatusRequestTimeout || e.Status >= http.StatusInternalServerError)
}

// errorCode is how codes of errors look. Anything else is not shown.
var errorCode = regexp.MustCompile(`^[A-Za-z_]{1,63}$`)

// problem is what failed, and where.
func (e *LoginError) problem() string {
	switch {
	case e.Problem != "":
		return e.Problem
	case e.Status == 0:
		return fmt.Sprintf("the token endpoint %s cannot be reached", e.Host)
	}
	answer, verb := fmt.Sprint(e.Status), "refused"
	if errorCode.MatchString(e.Code) {
		answer += " " + e.Code
	}
	if e.isTemporary() {
		verb = "failed to give"
	}
	return fmt.Sprintf("%s %s a token for %s (%s)", e.Host, verb, e.Identity, answer)
}

// explainLogin explains a failed login.
func explainLogin(e *LoginError, about Subject) explanation {
	wrong := fmt.Sprintf("The workload identity of ChatModelConfig %s could not log in: %s", about.Config, e.problem())
	if quote := quotable(e.Message, about); quote != "" {
		wrong += ". It said: " + clip.Ellipsis(strings.TrimSuffix(quote, "."), maxQuoted)
	}
	if e.isTemporary() {
		return explanation{wrong, "Check the network if it persists, then send a message to continue"}
	}
	return explanation{wrong, "Check how the service account parley-generation of this namespace is bound to its " +
		"identity, then send a message to continue"}
}

// hasIdentity reports whether calls of a configuration log in by the identity of the pod.
func hasIdentity(spec *v1beta1.ChatModelConfigSpec) bool {
	return spec.APIKey == nil && (spec.Auth != nil || spec.Provider == v1beta1.ProviderBedrock)
}

// credentialOf is what calls of a configuration log in with.
func credentialOf(spec *v1beta1.ChatModelConfigSpec) string {
	if hasIdentity(spec) {
		return "workload identity"
	}
	return "API key"
}
