// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
	"parley.dev/parley/test/modelserver"
)

// headerSecret is a header's value that nobody but the provider's gateway is to see.
const headerSecret = "gateway-token-5f2a9c"

// planted is what a provider may repeat and nobody may see.
const planted = "refused " + providertest.Key + " of " + headerSecret + ": '" + providertest.Secret + "'"

// wire is a scripted model server and the way to it.
type wire struct {
	protocol providertest.Protocol
	url      string
	client   *http.Client
}

// listen serves a script as the protocol's provider.
func listen(t *testing.T, p providertest.Protocol, script modelserver.Script, http2 bool) wire {
	t.Helper()
	server, err := modelserver.New(script)
	check.OK(t, err)
	listener := httptest.NewUnstartedServer(server)
	listener.Config.ErrorLog = log.New(io.Discard, "", 0) // Clients that go away are the point.
	if listener.EnableHTTP2 = http2; http2 {
		listener.StartTLS()
	} else {
		listener.Start()
	}
	t.Cleanup(listener.Close)
	return wire{protocol: p, url: listener.URL, client: listener.Client()}
}

// classified calls the model and classifies the error that the call ends in.
func (w wire) classified(t *testing.T) *v1beta1.GenerationError {
	t.Helper()
	base := w.url + "/v1"
	if w.protocol == providertest.Claude {
		base = w.url
	}
	spec := w.protocol.Spec(base)
	spec.Headers = append(spec.Headers, v1beta1.Header{Name: "X-Gateway", Value: headerSecret})
	err := providertest.Call(t, spec, w.client)
	if err == nil {
		t.Fatal("the call succeeded")
	}
	e := fault.Classify(err, fault.Subject{Config: "main", Spec: spec, Key: providertest.Key,
		Private: []string{providertest.Secret},
		Now:     time.Now()})
	if leaked := providertest.Leaked(e.Text(), providertest.Key, headerSecret, providertest.Secret, "<html",
		"x-query"); leaked != "" {
		t.Errorf("the message quotes %q: %s", leaked, e.Text())
	}
	check.Equal(t, "message, advice, provider", []any{true, true, string(w.protocol.Provider)},
		[]any{told(e.Message), told(e.Advice), e.Provider})
	return e
}

// told reports whether people can be told the text.
func told(text string) bool { return text != "" && len([]rune(text)) <= 1024 }

// status is a fault of an HTTP status, in the words of the provider.
func status(code int) modelserver.Fault {
	return modelserver.Fault{Kind: modelserver.FaultStatus, Status: code}
}

func problem(p modelserver.Problem) modelserver.Fault {
	return modelserver.Fault{Kind: modelserver.FaultStatus, Problem: p}
}

// page is what a proxy answers.
func page(code int) modelserver.Fault {
	f := status(code)
	f.Body = "<html><head><title>" + http.StatusText(code) + "</title></head><body>" + planted + "</body></html>"
	return f
}

// within is the fault in the middle of a stream.
func within(f modelserver.Fault, kind modelserver.FaultKind) modelserver.Fault {
	f.Kind, f.After = kind, new(1)
	return f
}

func (w want) check(t *testing.T, e *v1beta1.GenerationError) {
	t.Helper()
	check.Equal(t, "reason, retryable, status code", []any{w.reason, w.retryable, w.status},
		[]any{e.Reason, e.Retryable, int(e.StatusCode)})
	check.Contains(t, e.Text(), w.says)
	wait := e.RetryAfter()
	if wait > w.wait || wait < w.wait-2*time.Second {
		t.Errorf("got a wait of %s, want %s", wait, w.wait)
	}
}

// want is what an error is to be classified as.
type want struct {
	reason    v1beta1.ErrorReason
	retryable bool
	status    int
	wait      time.Duration
	says      string
}

func TestEveryFaultOfAProviderIsClassified(t *testing.T) {
	for _, c := range faultCases() {
		for _, p := range c.protocols {
			t.Run(fmt.Sprint(p.Provider, p.Transport, " ", c.name), func(t *testing.T) {
				c.want.check(t, listen(t, p, failing(c.fault), false).classified(t))
				// The same in the words of a provider that repeats what it was sent; words can be what tells the error.
				telltale := c.fault
				telltale.Message = planted
				telltale.Headers = map[string]string{"X-Debug": planted, "Www-Authenticate": "Bearer " + providertest.Key}
				check.Equal(t, "the status", int32(c.want.status), listen(t, p, failing(telltale), false).classified(t).StatusCode)
			})
		}
	}
}

func failing(f modelserver.Fault) modelserver.Script {
	return modelserver.Script{
		Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("a", "b")},
			Fault: &f}}}}
}

func TestWrongKeyAndUnknownModelAreTold(t *testing.T) {
	for _, p := range everyone {
		t.Run(fmt.Sprint(p.Provider, p.Transport), func(t *testing.T) {
			want{v1beta1.ErrorAuthenticationFailed, false, 401, 0, "Secret keys"}.
				check(t, listen(t, p, modelserver.Script{RequireKey: "another"}, false).classified(t))
			want{v1beta1.ErrorModelNotFound, false, 404, 0, "has no model some-model"}.
				check(t, listen(t, p, modelserver.Script{Models: []string{"another"}}, false).classified(t))
		})
	}
}

// The events of servers that imitate OpenAI.
func TestErrorsOfImitatorsWithinAStreamAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		event string
		want  want
	}{
		"OpenRouter": {
			`{"id":"gen-1","object":"chat.completion.chunk","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`,
			want{v1beta1.ErrorProviderUnavailable, true, 502, 0, "Provider disconnected"}},
		"vLLM": {
			`{"error":{"object":"error","message":"boom","type":"InternalServerError","param":null,"code":500}}`,
			want{v1beta1.ErrorProviderError, true, 500, 0, "boom"}},
		"a message alone": {`{"error":"the model is overloaded"}`,
			want{v1beta1.ErrorOverloaded, true, 0, 0, "overloaded"}},
		"what nobody defined": {`{"error":{"what":"` + providertest.Secret + `"}}`,
			want{v1beta1.ErrorUnknown, false, 0, 0, "does not know"}},
		"no JSON": {`<html>` + providertest.Secret + `</html>`,
			want{v1beta1.ErrorProviderUnavailable, true, 0, 0, "ended its answer before its end"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := within(modelserver.Fault{Body: c.event}, modelserver.FaultError)
			c.want.check(t, listen(t, providertest.Compatible, failing(f), false).classified(t))
		})
	}
}

func TestBodiesOfImitatorsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   want
	}{
		"a message alone": {404, `{"error":"model 'some-model' not found"}`,
			want{v1beta1.ErrorModelNotFound, false, 404, 0, "It said: model 'some-model' not found"}},
		"Text Generation Inference": {422,
			`{"error":"Input validation error: inputs must have less than 4096 tokens","error_type":"validation"}`,
			want{v1beta1.ErrorRequestRejected, false, 422, 0, "less than 4096"}},
		"a list of messages": {503, `{"error":["overloaded"]}`, want{v1beta1.ErrorOverloaded, true, 503, 0, "overloaded"}},
		"no error":           {503, `{"error":null}`, want{v1beta1.ErrorProviderUnavailable, true, 503, 0, ""}},
		"an older vLLM": {400,
			`{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}`, want{v1beta1.ErrorContextTooLong, false, 400, 0, ""}},
		"llama.cpp": {500,
			`{"error":{"code":500,"message":"the request exceeds the available context size","type":"server_error"}}`,
			want{v1beta1.ErrorContextTooLong, false, 500, 0, ""}},
		"a page as the message": {502, `{"error":{"message":"<!DOCTYPE html><html><body>Bad gateway</body></html>"}}`,
			want{v1beta1.ErrorProviderUnavailable, true, 502, 0, ""}},
		"Azure's rate": {429,
			`{"error":{"code":"429","message":"Requests to this operation have exceeded the token rate limit of your current pricing tier. Please retry after 10 seconds. Please go here: https://aka.ms/oai/quotaincrease to increase the default rate limit."}}`, want{v1beta1.ErrorRateLimited, true, 429, 0, ""}},
		"Azure's filter": {400,
			`{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400}}`, want{v1beta1.ErrorContentFiltered, false, 400, 0, ""}},
		"the provider behind OpenRouter": {400,
			`{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"message\":\"prompt is too long: ` +
				providertest.Secret + `\"}","provider_name":"P"}}}`,
			want{v1beta1.ErrorContextTooLong, false, 400, 0, ""}},
		"the quota of OpenRouter's own account": {429,
			`{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"You exceeded your current quota."}}}`,
			want{v1beta1.ErrorRateLimited, true, 429, 0, ""}},
		"Groq without capacity": {498, `{"error":{"message":"m","type":"capacity_exceeded"}}`,
			want{v1beta1.ErrorOverloaded, true, 498, 0, ""}},
		"an invalid call at Groq": {400,
			`{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed"}}`,
			want{v1beta1.ErrorReplyFailed, true, 400, 0, ""}},
		"something else": {400, `{"detail":"` + providertest.Secret + `"}`,
			want{v1beta1.ErrorRequestRejected, false, 400, 0, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			f := modelserver.Fault{Kind: modelserver.FaultStatus, Status: c.status, Body: c.body}
			for _, p := range []providertest.Protocol{providertest.Compatible, providertest.Responses} {
				c.want.check(t, listen(t, p, failing(f), false).classified(t))
			}
		})
	}
}

func TestStreamResetByHTTPIsTriedAgain(t *testing.T) {
	for _, p := range everyone {
		for name, f := range map[string]modelserver.Fault{
			"before the head": {Kind: modelserver.FaultReset},
			"in the middle":   within(modelserver.Fault{}, modelserver.FaultCut),
		} {
			t.Run(fmt.Sprint(p.Provider, p.Transport, " ", name), func(t *testing.T) {
				want{reason: v1beta1.ErrorProviderUnavailable, retryable: true}.check(t, listen(t, p, failing(f), true).
					classified(t))
			})
		}
	}
}

func TestWhatTheNetworkDoesIsToldApart(t *testing.T) {
	unresolvable := &http.Transport{
		DialContext: (&net.Dialer{Resolver: &net.Resolver{PreferGo: true,
			Dial: func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New("no name server")
			}}}).DialContext}
	late := &http.Transport{ResponseHeaderTimeout: 10 * time.Millisecond}
	hangs := failing(modelserver.Fault{Kind: modelserver.FaultHang})
	for name, c := range map[string]struct {
		through func(w wire) wire
		want    want
	}{
		"nobody listens": {func(w wire) wire { return wire{w.protocol, "http://127.0.0.1:1", w.client} },
			want{v1beta1.ErrorProviderUnavailable, true, 0, 0, "127.0.0.1 refused the connection"}},
		"no such name": {func(w wire) wire {
			return wire{w.protocol, "http://user:x-query@models.example", &http.Client{Transport: unresolvable}}
		},
			want{v1beta1.ErrorProviderUnavailable, true, 0, 0,
				"The name models.example cannot be resolved. Check baseURL of ChatModelConfig main"}},
		"no answer in time": {func(w wire) wire { return wire{w.protocol, w.url, &http.Client{Transport: late}} },
			want{v1beta1.ErrorProviderUnavailable, true, 0, 0, "in time"}},
		"no TLS": {func(w wire) wire {
			return wire{w.protocol, "https" + strings.TrimPrefix(w.url, "http"),
				w.client}
		}, want{v1beta1.ErrorTLSFailed, false, 0, 0, "begin with http://"}},
		"no such protocol": {func(w wire) wire { return wire{w.protocol, "gopher://models.example", w.client} },
			want{v1beta1.ErrorModelConfigInvalid, false, 0, 0, "is no URL that can be called"}},
		"a foreign's answer": {func(w wire) wire { return listen(t, w.protocol, hangs, true).strange() },
			want{v1beta1.ErrorTLSFailed, false, 0, 0, "TLS verification"}},
	} {
		for _, p := range everyone {
			t.Run(fmt.Sprint(p.Provider, p.Transport, " ", name), func(t *testing.T) {
				c.want.check(t, c.through(listen(t, p, hangs, false)).classified(t))
			})
		}
	}
}

// strange is the same server for a client that does not know who issued its certificate.
func (w wire) strange() wire {
	return wire{w.protocol, w.url, &http.Client{Transport: &http.Transport{}}}
}

func TestCallEndedByTheCallerIsTheCallers(t *testing.T) {
	about := fault.Subject{Config: "main", Spec: providertest.Chat.Spec("http://models.example/v1")}
	failure := &fantasy.ProviderError{StatusCode: 503, Cause: context.Canceled}
	e := fault.Classify(failure, about)
	check.Equal(t, "a failure", []any{v1beta1.ErrorProviderUnavailable, true}, []any{e.Reason, e.Retryable})
	// A cancellation that is not the caller's is the peer's.
	e = fault.Classify(context.Canceled, about)
	check.Equal(t, "the peer's cancellation", []any{v1beta1.ErrorProviderUnavailable, true}, []any{e.Reason, e.Retryable})
	about.Silence = 10 * time.Minute
	if e := fault.Classify(failure, about); e.Reason != v1beta1.ErrorProviderTimeout || !e.Retryable ||
		!strings.Contains(e.Text(), "nothing for 10m0s") {
		t.Errorf("silence: %+v", e)
	}
	about.Canceled = true
	e = fault.Classify(failure, about)
	check.Equal(t, "the caller's cancellation", []any{v1beta1.ErrorCanceled, false}, []any{e.Reason, e.Retryable})
}
