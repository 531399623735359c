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

// patch sends the changes of the repository that the parameter "repository" names. Without it, that is the only one,
// or, if there is none, the files outside of repositories.
func (s *Server) patch(w http.ResponseWriter, r *http.Request) error {
	found, err := s.review(w, r)
	if err != nil {
		return err
	}
	chosen, err := choose(found, r.URL.Query().Get("repository"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/x-diff")
	_, _ = io.WriteString(slowclient.New(w, writeTimeout), review.Patch(chosen)) // A client that is gone needs no answer.
	return nil
}

func choose(found *changes.Changes, path string) (changes.Repository, error) {
	switch {
	case path == "" && len(found.Repositories) == 0:
		return changes.Repository{Files: found.Files, Omitted: found.Omitted}, nil
	case path == "" && len(found.Repositories) > 1:
		return changes.Repository{}, refuse(protocol.NotUnique, "There are %d Git repositories: name one, such as %q.",
			len(found.Repositories), found.Repositories[0].Path)
	}
	for _, repository := range found.Repositories {
		if path == "" || path == repository.Path {
			return repository, nil
		}
	}
	return changes.Repository{}, refuse(protocol.NotFound, "There is no Git repository %.200q.", path)
}
