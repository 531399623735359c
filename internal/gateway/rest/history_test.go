// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http"
	"testing"
)

func TestOnlyWhoMayListsTheNamespaces(t *testing.T) {
	d := open(t, "parley-chat-user")
	request, err := http.NewRequestWithContext(t.Context(), "GET", d.url[:len(d.url)-len("/"+d.namespace)], nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+d.token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("somebody of one namespace is answered with %s", answer.Status)
	}
}
