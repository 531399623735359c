// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Bedrock is POST /model/{model}/invoke-with-response-stream, with a body of Anthropic's protocol.
const Bedrock Protocol = "bedrock"

// bedrockVersion is the one version of Anthropic's protocol that AWS has.
const bedrockVersion = "bedrock-2023-05-31"

// bedrockDialect is Anthropic's protocol as AWS carries it: model and streaming are in the path, the version is in the
// body, events come in binary frames and errors in AWS's own shape.
type bedrockDialect struct {
	anthropicDialect

	model string
}

func newBedrock(r *http.Request) dialect {
	return bedrockDialect{anthropicDialect: anthropicDialect{contentOnly: true}, model: r.PathValue("model")}
}

// bedrockErrors are what the reference of InvokeModel says about each status.
var bedrockErrors = map[int]apiError{
	http.StatusBadRequest: {kind: "ValidationException",
		message: "The input fails to satisfy the constraints specified by the service."},
	http.StatusUnauthorized: {kind: "UnrecognizedClientException",
		message: "The security token included in the request is invalid."},
	http.StatusForbidden: {kind: "AccessDeniedException",
		message: "You don't have access to the model with the specified model ID."},
	http.StatusNotFound: {kind: "ResourceNotFoundException", message: "The resource could not be found."},
	http.StatusRequestTimeout: {kind: "ModelTimeoutException",
		message: "Model has timed out in processing the request. Try your request again."},
	http.StatusTooManyRequests: {kind: "ThrottlingException",
		message: "Too many requests, please wait before trying again."},
	http.StatusInternalServerError: {kind: "InternalServerException",
		message: "The system encountered an unexpected error during processing. Try your request again."},
	http.StatusServiceUnavailable: {kind: "ServiceUnavailableException",
		message: "Bedrock is unable to process your request."},
}

func (bedrockDialect) protocol() Protocol      { return Bedrock }
func (bedrockDialect) requestIDHeader() string { return "X-Amzn-Requestid" }
func (bedrockDialect) contentType() string     { return "application/vnd.amazon.eventstream" }

func (bedrockDialect) errorShape(e apiError, _ string) any {
	return object{"message": e.complete(bedrockErrors).message}
}

// errorHeader names the error, which the body does not.
func (bedrockDialect) errorHeader(e apiError) (name, value string) {
	return "X-Amzn-Errortype", e.complete(bedrockErrors).kind
}

func (bedrockDialect) wrongKey(string) apiError {
	return apiError{status: http.StatusForbidden, kind: "UnrecognizedClientException",
		message: "The security token included in the request is invalid."}
}

func (bedrockDialect) unknownModel(string) apiError {
	return *refuse("The provided model identifier is invalid.")
}

func (d bedrockDialect) decode(body []byte, header http.Header) (*request, *apiError) {
	if refused := signedForAWS(header); refused != nil {
		return nil, refused
	}
	var in map[string]json.RawMessage
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refuse("Malformed input request, please reformat your input and try again.")
	}
	for _, key := range []string{"model", "stream"} {
		if in[key] != nil {
			return nil, refuse("Malformed input request: #: extraneous key [%s] is not permitted, please reformat your input "+
				"and try again.", key)
		}
	}
	if string(in["anthropic_version"]) != `"`+bedrockVersion+`"` {
		return nil, refuse("Malformed input request: #: required key [anthropic_version] not found, please reformat your " +
			"input and try again.")
	}
	in["model"], in["stream"] = encode(d.model), encode(true)
	inner := header.Clone()
	inner.Set("Anthropic-Version", bedrockVersion)
	r, refused := d.anthropicDialect.decode(encode(in), inner)
	if refused != nil {
		return nil, refused
	}
	r.protocol = Bedrock
	return r, nil
}

// signedForAWS holds that a request has a bearer token or a signature.
func signedForAWS(header http.Header) *apiError {
	authorization := header.Get("Authorization")
	signed := strings.HasPrefix(authorization, "AWS4-HMAC-SHA256 ") && header.Get("X-Amz-Date") != ""
	if signed || strings.HasPrefix(authorization, "Bearer ") {
		return nil
	}
	return &apiError{status: http.StatusForbidden, kind: "MissingAuthenticationTokenException",
		message: "Missing Authentication Token"}
}

// bedrockStream writes Anthropic's events as frames.
type bedrockStream struct{ *anthropicStream }

func (d bedrockDialect) stream(r *request, p *plan, out *sse) streamer {
	out.frame = chunkFrame
	inner, _ := d.anthropicDialect.stream(r, p, out).(*anthropicStream)
	return bedrockStream{inner}
}

// fail writes the exception, whose name begins with a small letter in a stream.
func (s bedrockStream) fail(e apiError) {
	e = e.complete(bedrockErrors)
	name := strings.ToLower(e.kind[:1]) + e.kind[1:]
	s.out.buf.Write(frame(encode(object{"message": e.message}),
		":exception-type", name, ":content-type", "application/json", ":message-type", "exception"))
}
