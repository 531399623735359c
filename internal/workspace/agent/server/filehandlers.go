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

func (s *Server) bind(w http.ResponseWriter, _ *http.Request, asked *protocol.Binding) error {
	if err := s.binding.bind(asked.Chat); err != nil {
		return err
	}
	return answer(w, http.StatusOK, asked)
}

// file answers the requests for the content of one file.
func (s *Server) file(w http.ResponseWriter, r *http.Request, name string) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return s.sendFile(w, r, name)
	case http.MethodPut:
		return s.takeFile(w, r, name)
	}
	return noSuchRequest(r)
}

func (s *Server) sendFile(w http.ResponseWriter, r *http.Request, name string) error {
	content, err := s.files.Content(r.Context(), name)
	if err != nil {
		return err
	}
	defer content.Close()
	if err := untimed(w); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", content.MediaType)
	h.Set("Content-Length", strconv.FormatInt(content.Size, 10))
	h.Set("Last-Modified", content.Modified.UTC().Format(http.TimeFormat))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	_, _ = io.Copy(slowclient.New(w, writeTimeout), content) // A client that got less than the length knows.
	return nil
}

func (s *Server) takeFile(w http.ResponseWriter, r *http.Request, name string) error {
	if r.ContentLength > protocol.MaxFileBytes {
		return refuse(protocol.TooLarge, "The content has %d bytes, more than %d.", r.ContentLength,
			protocol.MaxFileBytes)
	}
	release, err := s.large.Acquire(r.Context(), 1)
	if err != nil {
		return err
	}
	defer release()
	if err := timed(w, contentTimeout); err != nil {
		return err
	}
	content, err := body(w, r, protocol.MaxFileBytes)
	if err != nil {
		return err
	}
	info, err := s.files.Write(r.Context(), r.Header.Get(protocol.HeaderCall), name, content)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if info.Created {
		status = http.StatusCreated
	}
	return answer(w, status, info)
}

func (s *Server) read(w http.ResponseWriter, r *http.Request, asked *protocol.ReadRequest) error {
	return answerResult(w)(s.files.Read(r.Context(), asked))
}

func (s *Server) edit(w http.ResponseWriter, r *http.Request) error {
	release, err := s.large.Acquire(r.Context(), 1)
	if err != nil {
		return err
	}
	defer release()
	if err := timed(w, bodyTimeout); err != nil {
		return err
	}
	asked, err := decode[protocol.EditRequest](w, r)
	if err != nil {
		return err
	}
	return answerResult(w)(s.files.Edit(r.Context(), r.Header.Get(protocol.HeaderCall), asked))
}

func (s *Server) search(w http.ResponseWriter, r *http.Request, asked *protocol.SearchRequest) error {
	return answerResult(w)(s.files.Search(r.Context(), asked))
}
