// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"testing"
)

func TestNamespacesAreOfferedWhereNoneIsChosen(t *testing.T) {
	s := newStage(t)
	p := s.opened(t)
	p.Do("location.hash = '#/'")
	p.Sees("#list-empty", "Choose a namespace:")
	p.Click("#list-empty a", "prod")
	p.Until("the namespace is open", "location.hash === '#/prod'")

	s.answer("GET /v1beta1/namespaces", http.StatusOK, fields{"namespaces": []string{"only"}})
	p.Do("sessionStorage.removeItem('parley.place'); history.replaceState(null, '', '#/'); location.reload()")
	p.Until("the only namespace is open", "location.hash === '#/only'")
}
