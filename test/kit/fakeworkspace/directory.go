// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeworkspace

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"parley.dev/parley/internal/workspace/agent/files"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

// ServeDirectory searches and reads the files of a directory as the agent of a workspace does, links and devices
// included.
func (a *Agent) ServeDirectory(t testing.TB, dir string) {
	t.Helper()
	served, err := files.Open(files.Options{Directory: dir, State: t.TempDir()})
	check.OK(t, err)
	t.Cleanup(func() { _ = served.Close() })
	a.Search = func(asked protocol.SearchRequest) (*protocol.SearchResponse, *protocol.Error) {
		found, err := served.Search(t.Context(), &asked)
		refused, _ := errors.AsType[*protocol.Error](err)
		return found, refused
	}
	a.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/v1/files" {
			return false
		}
		content, err := served.Content(r.Context(), r.URL.Query().Get("path"))
		if refused, ok := errors.AsType[*protocol.Error](err); ok {
			refuse(w, http.StatusUnprocessableEntity, refused.Code, refused.Message)
			return true
		}
		defer content.Close()
		_, _ = io.Copy(w, content)
		return true
	}
}
