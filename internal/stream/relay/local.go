// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/kube/satoken"
)

const (
	// IncarnationHeader has the generator's incarnation.
	IncarnationHeader = "Parley-Incarnation"
	// FrameMediaType is the type of a stream of frames: one JSON document a line.
	FrameMediaType = "application/x-ndjson"
)

// Opened answers PUT and POST .../frames.
type Opened struct {
	// LastSeq is the number of the last frame that the relay has.
	LastSeq int64 `json:"lastSeq"`
}

// LocalHandler serves the generator, without credentials: only the generator can open the socket.
//
//	PUT  /v1/episodes/{uid}/{version}/{attempt}         201 opened, 200 was open already, 409 ErrExists
//	POST /v1/episodes/{uid}/{version}/{attempt}/frames  a body of frames, while the attempt runs
//	POST /v1/episodes/{uid}/{version}/{attempt}/close   204
//	GET  /v1/episodes/{uid}/{version}/{attempt}         the frames so far, one a line
//	GET  /v1/keys/wanted                                204 once keys of the issuer are needed
//	PUT  /v1/keys                                       a JSON Web Key Set, 204
//
// The last two are there if keys is not nil.
func LocalHandler(store *Store, keys *IssuerKeys) http.Handler {
	const episode = "/v1/episodes/{uid}/{version}/{attempt}"
	l := local{store, keys}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT "+episode, handle(l.open))
	mux.HandleFunc("POST "+episode+"/frames", handle(l.frames))
	mux.HandleFunc("GET "+episode, handle(l.soFar))
	mux.HandleFunc("POST "+episode+"/close", handle(l.close))
	if keys != nil {
		mux.HandleFunc("GET /v1/keys/wanted", handle(l.wanted))
		mux.HandleFunc("PUT /v1/keys", handle(l.putKeys))
	}
	return mux
}

// handle answers with the error of a handler.
func handle(serve func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r); err != nil {
			writeError(w, err)
		}
	}
}

// local serves the generator.
type local struct {
	store *Store
	keys  *IssuerKeys
}

func (l local) wanted(w http.ResponseWriter, r *http.Request) error {
	if l.keys.Wanted(r.Context()) == nil { // or the client is gone
		w.WriteHeader(http.StatusNoContent)
	}
	return nil
}

func (l local) putKeys(w http.ResponseWriter, r *http.Request) error {
	set, err := io.ReadAll(http.MaxBytesReader(w, r.Body, satoken.MaxKeysBytes))
	if err == nil {
		err = l.keys.Put(set)
	}
	if err != nil {
		return badRequest{err}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (l local) close(w http.ResponseWriter, r *http.Request) error {
	ep, err := episodeOf(r)
	if err != nil {
		return err
	}
	if err := l.store.Close(ep); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (l local) open(w http.ResponseWriter, r *http.Request) error {
	ep, incarnation, err := namesOf(r)
	if err != nil {
		return err
	}
	last, created, err := l.store.Open(ep, incarnation)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	writeJSON(w, status, Opened{LastSeq: last})
	return nil
}

// soFar serves a restarted generator the frames of its former life.
func (l local) soFar(w http.ResponseWriter, r *http.Request) error {
	ep, err := episodeOf(r)
	if err != nil {
		return err
	}
	sub := l.store.Subscribe(ep, 0)
	defer sub.Close()
	w.Header().Set("Content-Type", FrameMediaType)
	for batch, _ := sub.take(); batch != nil; batch, _ = sub.take() {
		_, _ = w.Write(batch) // or the client is gone
	}
	return nil
}

func (l local) frames(w http.ResponseWriter, r *http.Request) error {
	ep, incarnation, err := namesOf(r)
	if err != nil {
		return err
	}
	writer, err := l.store.Writer(ep, incarnation)
	if err != nil {
		return err
	}
	defer writer.Release()
	// A frame that is going to be dropped may be longer than what an episode keeps, but not without limit.
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(make([]byte, 0, 16<<10), 2*l.store.opts.EpisodeBytes)
	for lines.Scan() {
		if err := appendLine(writer, lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return badRequest{fmt.Errorf("reading frames: %w", err)}
	}
	writeJSON(w, http.StatusOK, Opened{LastSeq: writer.Received()})
	return nil
}

func appendLine(writer *Writer, line []byte) error {
	if len(line) == 0 {
		return nil
	}
	var numbered struct {
		Seq int64 `json:"seq"`
	}
	if err := json.Unmarshal(line, &numbered); err != nil {
		return badRequest{fmt.Errorf("decoding frame: %w", err)}
	}
	return writer.Append(numbered.Seq, line)
}

// badRequest is an error that the caller made.
type badRequest struct{ error }

func namesOf(r *http.Request) (fence.Fence, string, error) {
	ep, err := episodeOf(r)
	if err != nil {
		return ep, "", err
	}
	incarnation := r.Header.Get(IncarnationHeader)
	if incarnation == "" || len(incarnation) > 256 {
		return ep, "", badRequest{fmt.Errorf("header %s must hold 1 to 256 characters", IncarnationHeader)}
	}
	return ep, incarnation, nil
}

func episodeOf(r *http.Request) (fence.Fence, error) {
	ep, err := parseFence(r.PathValue("uid"), r.PathValue("version"), r.PathValue("attempt"))
	if err != nil {
		return ep, badRequest{fmt.Errorf("reading the path: %w", err)}
	}
	return ep, nil
}

func writeError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var bad badRequest
	switch {
	case errors.Is(err, ErrExists), errors.Is(err, ErrClosed), errors.Is(err, ErrGap):
		status = http.StatusConflict
	case errors.Is(err, ErrUnknown):
		status = http.StatusNotFound
	case errors.As(err, &bad):
		status = http.StatusBadRequest
	}
	writeJSON(w, status, map[string]string{"error": err.Error()})
}

// writeJSON answers with a document. If it cannot be written, the client is gone.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
