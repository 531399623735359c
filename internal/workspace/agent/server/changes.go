// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"net/http"

	"parley.dev/parley/api/changes"
	"parley.dev/parley/internal/netguard/slowclient"
	"parley.dev/parley/internal/workspace/agent/review"
	"parley.dev/parley/internal/workspace/protocol"
)

// review finds what is changed in the workspace.
func (s *Server) review(w http.ResponseWriter, r *http.Request) (*changes.Changes, error) {
	if err := readWithin(w, unbounded); err != nil {
		return nil, err
	}
	since, err := s.binding.since()
	if err != nil {
		return nil, err
	}
	return review.Workspace{Directory: s.options.Directory, State: s.options.State, Since: since, Run: s.options.Run}.
		Changes(r.Context())
}

// changes sends what is changed, with the diffs of text alone.
func (s *Server) changes(w http.ResponseWriter, r *http.Request) error {
	found, err := s.review(w, r)
	if err != nil {
		return err
	}
	for _, repository := range found.Repositories {
		for i := range repository.Files {
			if repository.Files[i].Binary {
				repository.Files[i].Diff = ""
			}
		}
	}
	return answer(w, http.StatusOK, found)
}

// patch sends the changes of the repository that the parameter "repository" names; without it, those of files outside
// of repositories.
func (s *Server) patch(w http.ResponseWriter, r *http.Request) error {
	found, err := s.review(w, r)
	if err != nil {
		return err
	}
	path := r.URL.Query().Get("repository")
	chosen := changes.Repository{Files: found.Files, Omitted: found.Omitted}
	if path != "" {
		chosen = changes.Repository{Error: "there is no Git repository of this path"}
	}
	for _, repository := range found.Repositories {
		if repository.Path == path {
			chosen = repository
		}
	}
	if chosen.Error != "" {
		return refuse(protocol.NotFound, "There is no patch of %.200q: %s.", path, chosen.Error)
	}
	w.Header().Set("Content-Type", "text/x-diff")
	_, _ = io.WriteString(slowclient.New(w, writeTimeout), review.Patch(chosen)) // A client that is gone needs no answer.
	return nil
}
