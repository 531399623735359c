// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui serves the page of package page on this machine, for one person. The browser never gets a token of the
// cluster: it shows a key that is valid for this server alone, and the server makes the page's requests with its own
// credentials. It answers its own pages alone.
package ui

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"parley.dev/parley/internal/gateway/page"
	"parley.dev/parley/internal/gateway/refusal"
)

const (
	headerTimeout  = 10 * time.Second
	maxHeaderBytes = 64 << 10
	// maxExchange is the most bytes of a request that exchanges a code.
	maxExchange = 1 << 10
)

// Config configures a server.
type Config struct {
	// Operations serves all requests of the page but those for streams and files, as the server's owner.
	Operations http.Handler
	// Files serves the requests for files of messages and for changes of workspaces, as the server's owner.
	Files http.Handler
	// Streams opens a stream of the gateway: a path and a query below /v1beta1/, and the id of the last event that the
	// page has. The page shows its error.
	Streams func(ctx context.Context, at, lastEventID string) (*http.Response, error)
	// Namespace and Chat are what the page shows first; Chat is optional.
	Namespace, Chat string
}

// Server serves the page.
type Server struct {
	config Config
	// code opens the page once; key authenticates its requests from then on.
	code, key string
	opened    atomic.Bool
	// hosts holds the valid Host headers. Another one is of a foreign name that resolves to this machine.
	hosts map[string]bool
	port  int
}

// New creates a server for a listener of this machine.
func New(config Config, listener net.Listener) (*Server, error) {
	at, ok := listener.Addr().(*net.TCPAddr)
	if !ok || !at.IP.IsLoopback() {
		return nil, fmt.Errorf("the page is served at an address of this machine alone, not at %s", listener.Addr())
	}
	port := strconv.Itoa(at.Port)
	return &Server{config: config, code: rand.Text(), key: rand.Text() + rand.Text(), port: at.Port,
		hosts: map[string]bool{"127.0.0.1:" + port: true, "localhost:" + port: true}}, nil
}

// URL returns the link that opens the page once. Browsers send no server the part behind the #.
func (s *Server) URL() string {
	return fmt.Sprintf("http://127.0.0.1:%d%s#code=%s", s.port, page.Path, s.code)
}

// Serve serves until ctx is done.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the page: %w", err)
	}
	return nil
}

// Handler serves the page and its requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(page.Path, page.Handler(page.LoginLink))
	mux.HandleFunc("POST "+page.Path+"session", s.exchange)
	mux.Handle("GET /v1beta1/namespaces/{namespace}/chats/{chat}/stream", s.authenticated(http.HandlerFunc(s.stream)))
	operations := s.authenticated(s.config.Operations)
	mux.HandleFunc("GET /v1beta1/namespaces/{namespace}/chats", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			s.authenticated(http.HandlerFunc(s.stream)).ServeHTTP(w, r)
			return
		}
		operations.ServeHTTP(w, r)
	})
	for _, path := range []string{"files/{sha256}", "changes", "changes.patch", "workspace"} {
		mux.Handle("/v1beta1/namespaces/{namespace}/chats/{chat}/"+path, s.authenticated(s.config.Files))
	}
	mux.Handle("/v1beta1/", operations)
	return s.ownPages(mux)
}

// ownPages refuses requests of other pages, by the headers in which browsers name the page.
func (s *Server) ownPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.hosts[r.Host] {
			refuse(w, http.StatusMisdirectedRequest, refusal.BadRequest,
				"this is no name of the page: open the link that kubectl chat ui prints")
			return
		}
		origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
		foreign := origin != "" && origin != "http://"+r.Host || site != "" && site != "same-origin" && site != "none"
		navigates := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.URL.Path == page.Path
		if foreign && !navigates {
			refuse(w, http.StatusForbidden, refusal.Forbidden, "pages of other origins are not answered")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// authenticated passes on requests that have the key, without the key.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !same(refusal.BearerToken(r.Header.Get("Authorization")), s.key) {
			refuse(w, http.StatusUnauthorized, refusal.Unauthorized,
				"this page is closed: run kubectl chat ui again")
			return
		}
		r.Header.Del("Authorization")
		next.ServeHTTP(w, r)
	})
}

// exchange returns the key for the code, once.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Code string `json:"code"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxExchange)).Decode(&asked)
	if err != nil || !same(asked.Code, s.code) || s.opened.Swap(true) {
		refuse(w, http.StatusForbidden, refusal.Forbidden,
			"this link opens the page once, and it was used or is not of this server: run kubectl chat ui again")
		return
	}
	page.Guard(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{ // or the page is gone
		"key": s.key, "namespace": s.config.Namespace, "chat": s.config.Chat})
}

// stream passes on a stream of the gateway.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	at := (&url.URL{Path: r.URL.Path, RawQuery: r.URL.RawQuery}).String()
	answer, err := s.config.Streams(r.Context(), at, r.Header.Get("Last-Event-ID"))
	if err != nil {
		if no, ok := errors.AsType[*refusal.Error](err); ok {
			no.Write(w)
			return
		}
		refuse(w, http.StatusBadGateway, "GatewayUnreachable", err.Error())
		return
	}
	defer func() { _ = answer.Body.Close() }()
	for _, name := range []string{"Content-Type", "Retry-After"} {
		if value := answer.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	page.Guard(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(flushing{w, http.NewResponseController(w)}, answer.Body) // The page opens another stream if one fails.
}

// flushing sends each write at once.
type flushing struct {
	to io.Writer
	rc *http.ResponseController
}

func (f flushing) Write(piece []byte) (int, error) {
	n, err := f.to.Write(piece)
	if err == nil {
		err = f.rc.Flush()
	}
	return n, err
}

func refuse(w http.ResponseWriter, status int, reason, message string) {
	page.Guard(w.Header())
	(&refusal.Error{Status: status, Reason: reason, Message: message}).Write(w)
}

// same compares in constant time.
func same(got, want string) bool { return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1 }
