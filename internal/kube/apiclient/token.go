// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// TokenFor asks for a token of a service account.
type TokenFor struct {
	// Namespace and Account are whose token it is.
	Namespace, Account string
	// Pod and PodUID bind the token to a pod of the account: it ends with that. Empty: it is bound to none.
	Pod, PodUID string
	// Seconds is how long it is good for; the API server grants at least 600.
	Seconds int64
}

// tokenRequest is authentication.k8s.io/v1 TokenRequest. The kind itself would bring in all others of Kubernetes.
type tokenRequest struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Spec       tokenSpec   `json:"spec"`
	Status     tokenStatus `json:"status"`
}

type tokenSpec struct {
	Audiences         []string     `json:"audiences,omitempty"`
	ExpirationSeconds int64        `json:"expirationSeconds"`
	BoundObjectRef    *boundObject `json:"boundObjectRef,omitempty"`
}

type boundObject struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

type tokenStatus struct {
	Token               string    `json:"token"`
	ExpirationTimestamp time.Time `json:"expirationTimestamp"`
}

// Token asks for a token that is good for the audience alone; an empty one is that of the API server. It says when the
// token expires. Errors are the API server's own.
func (c *Client) Token(ctx context.Context, f TokenFor, audience string) (string, time.Time, error) {
	spec := tokenSpec{ExpirationSeconds: f.Seconds}
	if audience != "" {
		spec.Audiences = []string{audience}
	}
	if f.Pod != "" {
		spec.BoundObjectRef = &boundObject{Kind: "Pod", APIVersion: "v1", Name: f.Pod, UID: f.PodUID}
	}
	body, err := json.Marshal(tokenRequest{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest", Spec: spec})
	if err != nil {
		return "", time.Time{}, fmt.Errorf("encoding a request for a token: %w", err)
	}
	raw, err := answer(c.rest.Post().AbsPath("/api/v1/namespaces", f.Namespace, "serviceaccounts", f.Account, "token").
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx))
	if err != nil {
		return "", time.Time{}, err
	}
	var granted tokenRequest
	if err := json.Unmarshal(raw, &granted); err != nil {
		return "", time.Time{}, fmt.Errorf("decoding a token: %w", err)
	}
	return granted.Status.Token, granted.Status.ExpirationTimestamp, nil
}
