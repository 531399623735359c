// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/netguard/httpguard"
)

// maxRefusal is how much of a refusal is read: 64 KiB.
const maxRefusal = 64 << 10

// exchange notes the last answer on the way to a token. The libraries put what they make of it into the text of an
// error, body included.
type exchange struct {
	next   http.RoundTripper
	host   string
	at     time.Time
	status int
	body   []byte
}

// over returns a copy of the client whose answers are noted.
func (e *exchange) over(client *http.Client) *http.Client {
	return httpguard.Wrap(client, func(next http.RoundTripper) http.RoundTripper {
		e.next = next
		return e
	})
}

func (e *exchange) RoundTrip(r *http.Request) (*http.Response, error) {
	e.host, e.at, e.status, e.body = r.URL.Host, time.Now(), 0, nil //nolint:forbidigo // Tokens expire by the real clock.
	response, err := e.next.RoundTrip(r)
	if err != nil {
		return response, err
	}
	e.status = response.StatusCode
	if e.status >= http.StatusMultipleChoices {
		e.body, _ = io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // What came counts.
		_ = response.Body.Close()                                         // It has been read.
		response.Body = io.NopCloser(bytes.NewReader(e.body))
	}
	return response, nil
}

// failure is why there is no token for the identity.
func (e *exchange) failure(identity string) *fault.LoginError {
	login := &fault.LoginError{Identity: identity, Status: e.status}
	if httpguard.Showable(e.host) {
		login.Host = e.host
	}
	switch {
	case e.host == "":
		login.Problem = "the token that is to be exchanged cannot be read in the generation pod"
	case e.status >= http.StatusOK && e.status < http.StatusMultipleChoices:
		login.Problem = login.Host + " answered without a token"
	default:
		login.Code, login.Message = refusal(e.body)
	}
	return login
}

// refusal is the code and the description of an error: as OAuth has it (RFC 6749, 5.2), or as Google's APIs do.
func refusal(body []byte) (code, message string) {
	var oauth struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &oauth) == nil {
		return oauth.Error, oauth.Description
	}
	var google struct {
		Error struct {
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &google) // A body that is neither has no message.
	return google.Error.Status, google.Error.Message
}
