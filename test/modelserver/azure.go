// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"net/http"
	"strings"
)

// azureDialect is a protocol of OpenAI as Azure hosts it: with a key in a header of its own, and with a deployment in
// the path of the older form.
type azureDialect struct {
	dialect

	deployment string
	// unversioned is whether the older form came without the version that it demands.
	unversioned bool
}

func azure(d dialect) func(*http.Request) dialect {
	return func(*http.Request) dialect { return azureDialect{dialect: d} }
}

func azureDeployment(r *http.Request) dialect {
	return azureDialect{dialect: chatDialect{}, deployment: r.PathValue("deployment"), unversioned: r.URL.Query().
		Get("api-version") == ""}
}

func (azureDialect) requestIDHeader() string { return "Apim-Request-Id" }

func (azureDialect) wrongKey(string) apiError {
	return apiError{
		status: http.StatusUnauthorized, kind: "401", code: "401",
		message: "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key " +
			"for an active subscription and use a correct regional API endpoint for your resource.",
	}
}

func (azureDialect) unknownModel(string) apiError {
	return apiError{
		status: http.StatusNotFound, code: "DeploymentNotFound",
		message: "The API deployment for this resource does not exist. If you created the deployment within the last 5 " +
			"minutes, please wait a moment and try again.",
	}
}

func (d azureDialect) decode(body []byte, header http.Header) (*request, *apiError) {
	if header.Get("Api-Key") == "" && !strings.HasPrefix(header.Get("Authorization"), "Bearer ") {
		refused := d.wrongKey("")
		return nil, &refused
	}
	if d.unversioned {
		return nil, &apiError{status: http.StatusNotFound, code: "404", message: "Resource not found"}
	}
	r, refused := d.dialect.decode(body, header)
	if refused == nil && d.deployment != "" {
		r.model = d.deployment
	}
	return r, refused
}

func (d azureDialect) stream(r *request, p *plan, out *sse) streamer {
	inner := d.dialect.stream(r, p, out)
	if chat, ok := inner.(*chatStream); ok {
		return azureStream{chat}
	}
	return inner
}

// azureStream begins with what Azure's filter thinks of the prompt, in a chunk that says nothing.
type azureStream struct{ *chatStream }

func (s azureStream) open() {
	s.out.event("", object{
		"id": "", "object": "", "created": 0, "model": "", "choices": []object{},
		"prompt_filter_results": []object{{"prompt_index": 0,
			"content_filter_results": object{"hate": object{"filtered": false, "severity": "safe"}}}},
	})
	s.chatStream.open()
}
