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
	"strconv"

	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/kube/satoken"
)

const (
	// IncarnationHeader names the generator's incarnation in the requests of the generator's side.
	IncarnationHeader = "Parley-Incarnation"
	// FrameMediaType is the type of a stream of frames: one JSON document a line.
	FrameMediaType = "application/x-ndjson"
)

// Opened answers PUT and POST .../frames.
type Opened struct {
	// LastSeq is the number of the last frame that the relay has.
	LastSeq int64 `json:"lastSeq"`
}

// LocalHandler is the generator's side. It asks for no credentials: who can open the socket is the generator.
//
//	PUT  /v1/episodes/{uid}/{version}/{attempt}         201 opened, 200 was open already, 409 ErrExists
//	POST /v1/episodes/{uid}/{version}/{attempt}/frames  a body of frames, as long as the attempt lasts
//	POST /v1/episodes/{uid}/{version}/{attempt}/close   204
//	GET  /v1/episodes/{uid}/{version}/{attempt}         the frames so far, one a line
//	GET  /v1/keys/wanted                                204 once keys of the issuer are wanted
//	PUT  /v1/keys                                       a JSON Web Key Set, 204
//
// The last two are there if keys is not nil.
func LocalHandler(store *Store, keys *IssuerKeys) http.Handler {
	mux := http.NewServeMux()
	if keys != nil {
		mux.HandleFunc("GET /v1/keys/wanted", func(w http.ResponseWriter, r *http.Request) {
			if keys.Wanted(r.Context()) == nil {
				w.WriteHeader(http.StatusNoContent)
			}
		})
		mux.HandleFunc("PUT /v1/keys", func(w http.ResponseWriter, r *http.Request) { handleKeys(keys, w, r) })
	}
	mux.HandleFunc("PUT /v1/episodes/{uid}/{version}/{attempt}", func(w http.ResponseWriter, r *http.Request) {
		handleOpen(store, w, r)
	})
	mux.HandleFunc("POST /v1/episodes/{uid}/{version}/{attempt}/frames", func(w http.ResponseWriter, r *http.Request) {
		handleFrames(store, w, r)
	})
	mux.HandleFunc("GET /v1/episodes/{uid}/{version}/{attempt}", func(w http.ResponseWriter, r *http.Request) {
		handleSoFar(store, w, r)
	})
	mux.HandleFunc("POST /v1/episodes/{uid}/{version}/{attempt}/close", func(w http.ResponseWriter, r *http.Request) {
		ep, err := episodeOf(r)
		if err == nil {
			err = store.Close(ep)
		}
		if err != nil {
			writeError(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

func handleKeys(keys *IssuerKeys, w http.ResponseWriter, r *http.Request) {
	set, err := io.ReadAll(http.MaxBytesReader(w, r.Body, satoken.MaxKeysBytes))
	if err == nil {
		err = keys.Put(set)
	}
	if err != nil {
		writeError(w, badRequest{err})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func handleOpen(store *Store, w http.ResponseWriter, r *http.Request) {
	ep, incarnation, err := namesOf(r)
	if err != nil {
		writeError(w, err)
		return
	}
	last, created, err := store.Open(ep, incarnation)
	if err != nil {
		writeError(w, err)
		return
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	writeJSON(w, status, Opened{LastSeq: last})
}

// handleSoFar lets a generator that was restarted read what its former life has said.
func handleSoFar(store *Store, w http.ResponseWriter, r *http.Request) {
	ep, err := episodeOf(r)
	if err != nil {
		writeError(w, err)
		return
	}
	sub := store.Subscribe(ep, 0)
	defer sub.Close()
	w.Header().Set("Content-Type", FrameMediaType)
	for batch, _ := sub.take(); batch != nil; batch, _ = sub.take() {
		if _, err := w.Write(batch); err != nil {
			return // The reader has gone.
		}
	}
}

func handleFrames(store *Store, w http.ResponseWriter, r *http.Request) {
	ep, incarnation, err := namesOf(r)
	if err != nil {
		writeError(w, err)
		return
	}
	writer, err := store.Writer(ep, incarnation)
	if err != nil {
		writeError(w, err)
		return
	}
	defer writer.Release()
	// A frame that the store has no room for anyway may be longer than all that it keeps, but not without limit.
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(make([]byte, 0, 16<<10), 2*store.opts.EpisodeBytes)
	for lines.Scan() {
		if err := appendLine(writer, lines.Bytes()); err != nil {
			writeError(w, err)
			return
		}
	}
	if err := lines.Err(); err != nil {
		writeError(w, badRequest{fmt.Errorf("reading frames: %w", err)})
		return
	}
	writeJSON(w, http.StatusOK, Opened{LastSeq: writer.Received()})
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
	uid := r.PathValue("uid")
	if !uidPattern.MatchString(uid) {
		return fence.Fence{}, badRequest{errors.New("the chat's UID in the path must be 1 to 64 letters, digits and dashes")}
	}
	version, err := strconv.ParseUint(r.PathValue("version"), 10, 63)
	if err != nil {
		return fence.Fence{}, badRequest{fmt.Errorf("history version in the path: %w", err)}
	}
	attempt, err := strconv.ParseUint(r.PathValue("attempt"), 10, 31)
	if err != nil {
		return fence.Fence{}, badRequest{fmt.Errorf("attempt in the path: %w", err)}
	}
	return fence.Fence{ChatUID: uid, HistoryVersion: int64(version), Attempt: int32(attempt)}, nil
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

// writeJSON answers with a document. An answer that cannot be written has no reader any more.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
