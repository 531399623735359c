// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import "net/http"

// hosts are the providers that serve one of the protocols at paths, with keys or in a form of their own.
var hosts = map[string]func(*http.Request) dialect{
	"POST /v1beta/models/{call}":                             newGemini,
	"POST /model/{model}/invoke-with-response-stream":        newBedrock,
	"POST /openai/v1/chat/completions":                       azure(chatDialect{}),
	"POST /openai/v1/responses":                              azure(responsesDialect{}),
	"POST /openai/deployments/{deployment}/chat/completions": azureDeployment,
	"POST /api/v1/chat/completions":                          openRouter,
	"POST /vercel/v1/chat/completions":                       vercel,
}

func (s *Server) serveHosts() {
	for pattern, host := range hosts {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, host(r)) })
	}
}

// keyHeaders are the headers that hold keys, other than Authorization.
var keyHeaders = []string{"X-Api-Key", "X-Goog-Api-Key", "Api-Key"}
