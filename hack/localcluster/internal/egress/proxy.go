// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package egress is a way out of a cluster for one origin: a reverse proxy that listens within the cluster's network
// and calls from the machine's. Pods of a local cluster reach a model provider by it.
package egress

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// Handler forwards every request to the origin, as it is and without waiting for the end of an answer. It logs nothing:
// requests hold API keys.
func Handler(origin *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(origin)
			r.Out.Host = origin.Host
		},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
}
