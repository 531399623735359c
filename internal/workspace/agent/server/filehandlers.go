// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"net/http"
	"strconv"

	"parley.dev/parley/internal/netguard/slowclient"
	"parley.dev/parley/internal/workspace/protocol"
)

func (s *Server) bind(_ *http.Request, binding *protocol.Binding) (*protocol.Binding, error) {
	return binding, s.binding.bind(binding.Chat)
}

// sendFile sends the content of the file that the parameter "path" names.
func (s *Server) sendFile(w http.ResponseWriter, r *http.Request) error {
	content, err := s.files.Content(r.Context(), r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	defer content.Close()
	if err := readWithin(w, unbounded); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", content.MediaType)
	h.Set("Content-Length", strconv.FormatInt(content.Size, 10))
	h.Set("Last-Modified", content.Modified.UTC().Format(http.TimeFormat))
	_, _ = io.Copy(slowclient.New(w, writeTimeout), content) // The length tells the client if a part is missing.
	return nil
}

// writeFile makes the body the content of the file that the parameter "path" names.
func (s *Server) writeFile(w http.ResponseWriter, r *http.Request) error {
	content, err := body(w, r, protocol.MaxFileBytes)
	if err != nil {
		return err
	}
	info, err := s.files.Write(r.Context(), r.Header.Get(protocol.HeaderCall), r.URL.Query().Get("path"), content)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if info.Created {
		status = http.StatusCreated
	}
	return answer(w, status, info)
}

func (s *Server) read(r *http.Request, read *protocol.ReadRequest) (*protocol.ReadResponse, error) {
	return s.files.Read(r.Context(), read)
}

func (s *Server) edit(r *http.Request, edit *protocol.EditRequest) (*protocol.EditResponse, error) {
	return s.files.Edit(r.Context(), r.Header.Get(protocol.HeaderCall), edit)
}

func (s *Server) search(r *http.Request, search *protocol.SearchRequest) (*protocol.SearchResponse, error) {
	return s.files.Search(r.Context(), search)
}
