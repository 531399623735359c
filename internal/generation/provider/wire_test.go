// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

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

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/test/modelserver"
)

// headerSecret is a header's value that nobody but the provider's gateway is to see.
const headerSecret = "gateway-token-5f2a9c"

// planted is what a provider may repeat and nobody may see.
const planted = "refused " + key + " of " + headerSecret + ": '" + secret + "'"

// wire is a scripted model server and the way to it.
type wire struct {
	protocol protocol
	url      string
	client   *http.Client
}

// listen serves a script as the protocol's provider.
func listen(t *testing.T, p protocol, script modelserver.Script, http2 bool) wire {
	t.Helper()
	server, err := modelserver.New(script)
	if err != nil {
		t.Fatal(err)
	}
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

// classified calls the model through fantasy's real client and classifies the error that the call ends in.
func (w wire) classified(t *testing.T) *v1alpha1.GenerationError {
	t.Helper()
	base := w.url + "/v1"
	if w.protocol == claude {
		base = w.url
	}
	spec := w.protocol.spec(base)
	spec.Headers = append(spec.Headers, v1alpha1.Header{Name: "X-Gateway", Value: headerSecret})
	err := callWith(t, spec, w.client)
	if err == nil {
		t.Fatal("the call succeeded")
	}
	e := provider.Classify(err, provider.Subject{Config: "main", Spec: spec, Key: key, Private: []string{secret}, Now: time.Now()})
	if leaked := leaks(e.Message, key, headerSecret, secret, "<html", "x-query"); leaked != "" {
		t.Errorf("the message quotes %q: %s", leaked, e.Message)
	}
	if e.Message == "" || len([]rune(e.Message)) > 1024 || e.Provider != string(w.protocol.provider) {
		t.Errorf("got provider %q and message %q", e.Provider, e.Message)
	}
	return e
}

// leaks is the first of the texts that is in the message, and empty if none is.
func leaks(message string, texts ...string) string {
	for _, text := range texts {
		if strings.Contains(message, text) {
			return text
		}
	}
	return ""
}

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
	f.Kind, f.After = kind, modelserver.Count(1)
	return f
}

func (w want) check(t *testing.T, e *v1alpha1.GenerationError) {
	t.Helper()
	if e.Reason != w.reason || e.Retryable != w.retryable || int(e.StatusCode) != w.status || !strings.Contains(e.Message, w.says) {
		t.Errorf("got %s %d, retryable %v, want %+v: %s", e.Reason, e.StatusCode, e.Retryable, w, e.Message)
	}
	if wait := e.RetryAfter(); wait > w.wait || wait < w.wait-2*time.Second {
		t.Errorf("got a wait of %s, want %s", wait, w.wait)
	}
}

// want is what an error is to be classified as.
type want struct {
	reason    v1alpha1.ErrorReason
	retryable bool
	status    int
	wait      time.Duration
	says      string
}

var (
	everyOpenAI = []protocol{chat, responses, compatible}
	everyone    = []protocol{chat, responses, compatible, claude}
	onlyClaude  = []protocol{claude}
)

type faultCase struct {
	name      string
	protocols []protocol
	fault     modelserver.Fault
	want      want
}

// faultCases are what providers answer, and what it means.
func faultCases() []faultCase {
	again, day := true, modelserver.Duration(24*time.Hour)
	half := modelserver.Duration(30 * time.Minute)
	retry := func(f modelserver.Fault, r modelserver.RetryAfter) modelserver.Fault { f.RetryAfter = &r; return f }
	header := func(f modelserver.Fault, name, value string) modelserver.Fault {
		f.Headers = map[string]string{name: value}
		return f
	}
	tooLong := modelserver.Fault{Status: 400, Code: "context_length_exceeded", Message: "Your input exceeds the context window of this model."}
	plain429 := modelserver.Fault{Kind: modelserver.FaultStatus, Status: 429, Message: "Slow down."}
	return []faultCase{
		{"400", everyone, status(400), want{v1alpha1.ErrorRequestRejected, false, 400, 0, "Invalid request"}},
		{"401", everyone, status(401), want{v1alpha1.ErrorAuthenticationFailed, false, 401, 0, `key "token" of Secret keys`}},
		{"402", everyone, status(402), want{v1alpha1.ErrorUsageLimitReached, false, 402, 0, "billing"}},
		{"403", everyone, status(403), want{v1alpha1.ErrorPermissionDenied, false, 403, 0, "some-model"}},
		{"404", everyOpenAI, status(404), want{v1alpha1.ErrorRequestRejected, false, 404, 0, "Not found"}},
		{"408", everyone, status(408), want{v1alpha1.ErrorProviderUnavailable, again, 408, 0, ""}},
		{"409", everyone, status(409), want{v1alpha1.ErrorProviderUnavailable, again, 409, 0, ""}},
		{"413", everyone, status(413), want{v1alpha1.ErrorContextTooLong, false, 413, 0, ""}},
		{"422", everyone, status(422), want{v1alpha1.ErrorRequestRejected, false, 422, 0, ""}},
		{"429", everyOpenAI, status(429), want{v1alpha1.ErrorRateLimited, again, 429, 20 * time.Second, "Wait"}},
		{"429", onlyClaude, status(429), want{v1alpha1.ErrorRateLimited, again, 429, 0, "Wait"}},
		{"500", everyone, status(500), want{v1alpha1.ErrorProviderError, again, 500, 0, ""}},
		{"503", everyOpenAI, status(503), want{v1alpha1.ErrorOverloaded, again, 503, 0, "overloaded"}},
		{"503", onlyClaude, status(503), want{v1alpha1.ErrorProviderUnavailable, again, 503, 0, ""}},
		{"504", everyone, status(504), want{v1alpha1.ErrorProviderUnavailable, again, 504, 0, ""}},
		{"529", everyone, status(529), want{v1alpha1.ErrorOverloaded, again, 529, 0, "no capacity"}},

		{"credit used up", everyOpenAI, problem(modelserver.ProblemQuota), want{v1alpha1.ErrorUsageLimitReached, false, 429, 0, "billing"}},
		{"credit used up", onlyClaude, problem(modelserver.ProblemQuota), want{v1alpha1.ErrorUsageLimitReached, false, 400, 0, "billing"}},
		{"limit of the account's own", everyone, problem(modelserver.ProblemSpendLimit), want{v1alpha1.ErrorUsageLimitReached, false, 400, 0, "imit"}},
		{"credit used up, with a wait", everyOpenAI, retry(problem(modelserver.ProblemQuota), modelserver.RetryAfter{Seconds: modelserver.Count(9)}), want{v1alpha1.ErrorUsageLimitReached, false, 429, 0, ""}},
		{"no access to the model", everyOpenAI, problem(modelserver.ProblemNoAccess), want{v1alpha1.ErrorModelNotFound, false, 403, 0, "does not have access to model"}},
		{"no access to the model", onlyClaude, problem(modelserver.ProblemNoAccess), want{v1alpha1.ErrorModelNotFound, false, 404, 0, "has no model some-model"}},
		{"more than the rate", everyOpenAI, problem(modelserver.ProblemTooMuchAtOnce), want{v1alpha1.ErrorContextTooLong, false, 429, 0, "rate of tokens"}},
		{"too large", onlyClaude, problem(modelserver.ProblemTooMuchAtOnce), want{v1alpha1.ErrorContextTooLong, false, 413, 0, ""}},
		{"content", everyone, problem(modelserver.ProblemContent), want{v1alpha1.ErrorContentFiltered, false, 400, 0, "does not answer this content"}},
		{"disabled", everyOpenAI, problem(modelserver.ProblemDisabled), want{v1alpha1.ErrorProviderDisabled, false, 401, 0, "has been deactivated"}},
		{"disabled", onlyClaude, problem(modelserver.ProblemDisabled), want{v1alpha1.ErrorProviderDisabled, false, 400, 0, "has been disabled"}},
		{"setting", everyone, problem(modelserver.ProblemSetting), want{v1alpha1.ErrorRequestRejected, false, 400, 0, "temperature"}},
		{"history", everyone, problem(modelserver.ProblemHistory), want{v1alpha1.ErrorHistoryRejected, false, 400, 0, "do not fit together"}},
		{"capacity", everyOpenAI, problem(modelserver.ProblemCapacity), want{v1alpha1.ErrorOverloaded, again, 503, 0, ""}},
		{"capacity", onlyClaude, problem(modelserver.ProblemCapacity), want{v1alpha1.ErrorOverloaded, again, 529, 0, ""}},
		{"too long", everyone, modelserver.Fault{Kind: modelserver.FaultContextTooLong}, want{v1alpha1.ErrorContextTooLong, false, 400, 0, "Start a new chat"}},

		{"wait in seconds", everyone, retry(plain429, modelserver.RetryAfter{Seconds: modelserver.Count(7)}), want{v1alpha1.ErrorRateLimited, again, 429, 7 * time.Second, ""}},
		{"wait in milliseconds before seconds", everyone, retry(plain429, modelserver.RetryAfter{Milliseconds: modelserver.Count(2500), Seconds: modelserver.Count(60)}), want{v1alpha1.ErrorRateLimited, again, 429, 3 * time.Second, ""}},
		{"wait in parts of a second", everyone, header(status(529), "Retry-After", "0.25"), want{v1alpha1.ErrorOverloaded, again, 529, time.Second, ""}},
		{"wait until a date", everyone, retry(status(504), modelserver.RetryAfter{Date: &half}), want{v1alpha1.ErrorProviderUnavailable, again, 504, 30 * time.Minute, ""}},
		{"wait of a day", everyone, retry(plain429, modelserver.RetryAfter{Date: &day}), want{v1alpha1.ErrorRateLimited, again, 429, time.Hour, ""}},
		{"told to try again", everyone, header(status(400), "X-Should-Retry", "true"), want{v1alpha1.ErrorRequestRejected, again, 400, 0, ""}},
		{"told not to try again", everyone, header(status(500), "x-should-retry", "false"), want{v1alpha1.ErrorProviderError, false, 500, 0, ""}},
		{"a wrong key, told to try again", everyone, header(status(401), "x-should-retry", "true"), want{v1alpha1.ErrorAuthenticationFailed, false, 401, 0, ""}},

		{"a proxy's 403", everyone, page(403), want{v1alpha1.ErrorPermissionDenied, false, 403, 0, ""}},
		{"a proxy's 404", everyone, page(404), want{v1alpha1.ErrorRequestRejected, false, 404, 0, "baseURL"}},
		{"a proxy's 502", everyone, page(502), want{v1alpha1.ErrorProviderUnavailable, again, 502, 0, ""}},
		{"a proxy's 524", everyone, page(524), want{v1alpha1.ErrorProviderUnavailable, again, 524, 0, ""}},

		{"lost before the head", everyone, modelserver.Fault{Kind: modelserver.FaultReset}, want{v1alpha1.ErrorProviderUnavailable, again, 0, 0, ""}},
		{"lost in the middle", everyone, within(modelserver.Fault{}, modelserver.FaultCut), want{v1alpha1.ErrorProviderUnavailable, again, 0, 0, ""}},
		{"ended in the middle", everyone, within(modelserver.Fault{}, modelserver.FaultEnd), want{v1alpha1.ErrorProviderUnavailable, again, 0, 0, "before its end"}},

		{"overloaded within the stream", everyone, within(problem(modelserver.ProblemCapacity), modelserver.FaultError), want{v1alpha1.ErrorOverloaded, again, 0, 0, "no capacity"}},
		{"limited within the stream", everyOpenAI, within(status(429), modelserver.FaultError), want{v1alpha1.ErrorRateLimited, again, 0, 20 * time.Second, ""}},
		{"limited within the stream", onlyClaude, within(status(429), modelserver.FaultError), want{v1alpha1.ErrorRateLimited, again, 0, 0, ""}},
		{"failed within the stream", everyone, within(status(500), modelserver.FaultError), want{v1alpha1.ErrorProviderError, again, 0, 0, ""}},
		{"used up within the stream", everyone, within(problem(modelserver.ProblemQuota), modelserver.FaultError), want{v1alpha1.ErrorUsageLimitReached, false, 0, 0, ""}},
		{"rejected within the stream", everyone, within(problem(modelserver.ProblemSetting), modelserver.FaultError), want{reason: v1alpha1.ErrorRequestRejected}},
		{"too long within the stream", everyOpenAI, within(tooLong, modelserver.FaultError), want{v1alpha1.ErrorContextTooLong, false, 0, 0, ""}},
		{"a failed reply", everyone, within(status(500), modelserver.FaultFailed), want{v1alpha1.ErrorProviderError, again, 0, 0, ""}},
		{"a limited reply", []protocol{responses}, within(status(429), modelserver.FaultFailed), want{v1alpha1.ErrorRateLimited, again, 0, 20 * time.Second, ""}},
	}
}

func TestEveryFaultOfAProviderIsClassified(t *testing.T) {
	for _, c := range faultCases() {
		for _, p := range c.protocols {
			t.Run(fmt.Sprint(p.provider, p.transport, " ", c.name), func(t *testing.T) {
				c.want.check(t, listen(t, p, failing(c.fault), false).classified(t))
				// The same in the words of a provider that repeats what it was sent; words can be what tells the error.
				telltale := c.fault
				telltale.Message = planted
				telltale.Headers = map[string]string{"X-Debug": planted, "Www-Authenticate": "Bearer " + key}
				if e := listen(t, p, failing(telltale), false).classified(t); e.StatusCode != int32(c.want.status) {
					t.Errorf("got %+v", e)
				}
			})
		}
	}
}

func failing(f modelserver.Fault) modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("a", "b")}, Fault: &f}}}}
}

func TestAWrongKeyAndAnUnknownModelAreTold(t *testing.T) {
	for _, p := range everyone {
		t.Run(fmt.Sprint(p.provider, p.transport), func(t *testing.T) {
			want{v1alpha1.ErrorAuthenticationFailed, false, 401, 0, "Secret keys"}.
				check(t, listen(t, p, modelserver.Script{RequireKey: "another"}, false).classified(t))
			want{v1alpha1.ErrorModelNotFound, false, 404, 0, "has no model some-model"}.
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
		"OpenRouter": {`{"id":"gen-1","object":"chat.completion.chunk","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`,
			want{v1alpha1.ErrorProviderUnavailable, true, 502, 0, "Provider disconnected"}},
		"vLLM":                {`{"error":{"object":"error","message":"boom","type":"InternalServerError","param":null,"code":500}}`, want{v1alpha1.ErrorProviderError, true, 500, 0, "boom"}},
		"a message alone":     {`{"error":"the model is overloaded"}`, want{v1alpha1.ErrorOverloaded, true, 0, 0, "overloaded"}},
		"what nobody defined": {`{"error":{"what":"` + secret + `"}}`, want{v1alpha1.ErrorUnknown, false, 0, 0, "not known"}},
		"no JSON":             {`<html>` + secret + `</html>`, want{v1alpha1.ErrorUnknown, false, 0, 0, "not known"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := within(modelserver.Fault{Body: c.event}, modelserver.FaultError)
			c.want.check(t, listen(t, compatible, failing(f), false).classified(t))
		})
	}
}

func TestBodiesOfImitatorsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   want
	}{
		"a message alone":           {404, `{"error":"model 'some-model' not found"}`, want{v1alpha1.ErrorModelNotFound, false, 404, 0, "It said: model 'some-model' not found"}},
		"Text Generation Inference": {422, `{"error":"Input validation error: inputs must have less than 4096 tokens","error_type":"validation"}`, want{v1alpha1.ErrorRequestRejected, false, 422, 0, "less than 4096"}},
		"an older vLLM":             {400, `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}`, want{v1alpha1.ErrorContextTooLong, false, 400, 0, ""}},
		"llama.cpp":                 {500, `{"error":{"code":500,"message":"the request exceeds the available context size","type":"server_error"}}`, want{v1alpha1.ErrorContextTooLong, false, 500, 0, ""}},
		"a page as the message":     {502, `{"error":{"message":"<!DOCTYPE html><html><body>Bad gateway</body></html>"}}`, want{v1alpha1.ErrorProviderUnavailable, true, 502, 0, ""}},
		"Azure's rate":              {429, `{"error":{"code":"429","message":"Requests to this operation have exceeded the token rate limit of your current pricing tier. Please retry after 10 seconds. Please go here: https://aka.ms/oai/quotaincrease to increase the default rate limit."}}`, want{v1alpha1.ErrorRateLimited, true, 429, 0, ""}},
		"Azure's filter":            {400, `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400}}`, want{v1alpha1.ErrorContentFiltered, false, 400, 0, ""}},
		"something else":            {400, `{"detail":"` + secret + `"}`, want{v1alpha1.ErrorRequestRejected, false, 400, 0, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			f := modelserver.Fault{Kind: modelserver.FaultStatus, Status: c.status, Body: c.body}
			c.want.check(t, listen(t, compatible, failing(f), false).classified(t))
		})
	}
}

func TestAStreamThatHTTP2ResetsIsTriedAgain(t *testing.T) {
	for _, p := range everyone {
		for name, f := range map[string]modelserver.Fault{
			"before the head": {Kind: modelserver.FaultReset}, "in the middle": within(modelserver.Fault{}, modelserver.FaultCut),
		} {
			t.Run(fmt.Sprint(p.provider, p.transport, " ", name), func(t *testing.T) {
				want{reason: v1alpha1.ErrorProviderUnavailable, retryable: true}.check(t, listen(t, p, failing(f), true).classified(t))
			})
		}
	}
}

func TestWhatTheNetworkDoesIsToldApart(t *testing.T) {
	unresolvable := &http.Transport{DialContext: (&net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server")
	}}}).DialContext}
	late := &http.Transport{ResponseHeaderTimeout: 10 * time.Millisecond}
	hangs := failing(modelserver.Fault{Kind: modelserver.FaultHang})
	for name, c := range map[string]struct {
		through func(w wire) wire
		want    want
	}{
		"nobody listens": {func(w wire) wire { return wire{w.protocol, "http://127.0.0.1:1", w.client} }, want{v1alpha1.ErrorProviderUnavailable, true, 0, 0, "127.0.0.1 cannot be reached"}},
		"no such name": {func(w wire) wire {
			return wire{w.protocol, "http://user:x-query@models.example", &http.Client{Transport: unresolvable}}
		},
			want{v1alpha1.ErrorProviderUnavailable, true, 0, 0, "The name models.example cannot be resolved. Check baseURL of ChatModelConfig main"}},
		"no answer in time":  {func(w wire) wire { return wire{w.protocol, w.url, &http.Client{Transport: late}} }, want{v1alpha1.ErrorProviderUnavailable, true, 0, 0, "in time"}},
		"no TLS":             {func(w wire) wire { return wire{w.protocol, "https" + strings.TrimPrefix(w.url, "http"), w.client} }, want{v1alpha1.ErrorTLSFailed, false, 0, 0, "begin with http://"}},
		"no such protocol":   {func(w wire) wire { return wire{w.protocol, "gopher://models.example", w.client} }, want{v1alpha1.ErrorModelConfigInvalid, false, 0, 0, "is no URL that can be called"}},
		"a foreign's answer": {func(w wire) wire { return listen(t, w.protocol, hangs, true).strange() }, want{v1alpha1.ErrorTLSFailed, false, 0, 0, "does not prove with a certificate"}},
	} {
		for _, p := range everyone {
			t.Run(fmt.Sprint(p.provider, p.transport, " ", name), func(t *testing.T) {
				c.want.check(t, c.through(listen(t, p, hangs, false)).classified(t))
			})
		}
	}
}

// strange is the same server for a client that does not know who issued its certificate.
func (w wire) strange() wire {
	return wire{w.protocol, w.url, &http.Client{Transport: &http.Transport{}}}
}

func TestACallThatTheCallerEndedIsTheCallers(t *testing.T) {
	about := provider.Subject{Config: "main", Spec: chat.spec("http://models.example/v1")}
	failure := &fantasy.ProviderError{StatusCode: 503, Cause: context.Canceled}
	if e := provider.Classify(failure, about); e.Reason != v1alpha1.ErrorProviderUnavailable || !e.Retryable {
		t.Errorf("a failure: %+v", e)
	}
	// A cancellation that is not the caller's is the peer's.
	if e := provider.Classify(context.Canceled, about); e.Reason != v1alpha1.ErrorProviderUnavailable || !e.Retryable {
		t.Errorf("the peer's cancellation: %+v", e)
	}
	about.Silence = 10 * time.Minute
	if e := provider.Classify(failure, about); e.Reason != v1alpha1.ErrorProviderSilent || !e.Retryable || !strings.Contains(e.Message, "nothing for 10m0s") {
		t.Errorf("silence: %+v", e)
	}
	about.Canceled = true
	if e := provider.Classify(failure, about); e.Reason != v1alpha1.ErrorCanceled || e.Retryable {
		t.Errorf("the caller's cancellation: %+v", e)
	}
}
