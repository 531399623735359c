// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/providertest"
	"parley.dev/parley/test/modelserver"
)

var (
	everyOpenAI = []providertest.Protocol{providertest.Chat, providertest.Responses, providertest.Compatible}
	everyone    = []providertest.Protocol{providertest.Chat, providertest.Responses, providertest.Compatible,
		providertest.Claude}
	onlyCompatible = []providertest.Protocol{providertest.Compatible}
	onlyClaude     = []providertest.Protocol{providertest.Claude}
	onlyGemini     = []providertest.Protocol{providertest.Gemini}
)

type faultCase struct {
	name      string
	protocols []providertest.Protocol
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
	tooLong := modelserver.Fault{Status: 400, Code: "context_length_exceeded",
		Message: "Your input exceeds the context window of this model."}
	plain429 := modelserver.Fault{Kind: modelserver.FaultStatus, Status: 429, Message: "Slow down."}
	return []faultCase{
		{"400", everyone, status(400), want{v1beta1.ErrorRequestRejected, false, 400, 0, "Invalid request"}},
		{"401", everyone, status(401), want{v1beta1.ErrorAuthenticationFailed, false, 401, 0, `key "token" of Secret keys`}},
		{"402", everyone, status(402), want{v1beta1.ErrorUsageLimitReached, false, 402, 0, "billing"}},
		{"403", everyone, status(403), want{v1beta1.ErrorPermissionDenied, false, 403, 0, "some-model"}},
		{"404", everyOpenAI, status(404), want{v1beta1.ErrorRequestRejected, false, 404, 0, "Not found"}},
		{"408", everyone, status(408), want{v1beta1.ErrorProviderUnavailable, again, 408, 0, ""}},
		{"409", everyone, status(409), want{v1beta1.ErrorProviderUnavailable, again, 409, 0, ""}},
		{"413", everyone, status(413), want{v1beta1.ErrorContextTooLong, false, 413, 0, ""}},
		{"422", everyone, status(422), want{v1beta1.ErrorRequestRejected, false, 422, 0, ""}},
		{"429", everyOpenAI, status(429), want{v1beta1.ErrorRateLimited, again, 429, 20 * time.Second, "Wait"}},
		{"429", onlyClaude, status(429), want{v1beta1.ErrorRateLimited, again, 429, 0, "Wait"}},
		{"500", everyone, status(500), want{v1beta1.ErrorProviderError, again, 500, 0, ""}},
		{"503", everyOpenAI, status(503), want{v1beta1.ErrorOverloaded, again, 503, 0, "overloaded"}},
		{"503", onlyClaude, status(503), want{v1beta1.ErrorProviderUnavailable, again, 503, 0, ""}},
		{"504", everyone, status(504), want{v1beta1.ErrorProviderUnavailable, again, 504, 0, ""}},
		{"529", everyone, status(529), want{v1beta1.ErrorOverloaded, again, 529, 0, "no capacity"}},

		{"credit used up", everyOpenAI, problem(modelserver.ProblemQuota),
			want{v1beta1.ErrorUsageLimitReached, false, 429, 0, "billing"}},
		{"credit used up", onlyClaude, problem(modelserver.ProblemQuota),
			want{v1beta1.ErrorUsageLimitReached, false, 400, 0, "billing"}},
		{"limit of the account's own", everyone, problem(modelserver.ProblemSpendLimit),
			want{v1beta1.ErrorUsageLimitReached, false, 400, 0, "imit"}},
		{"credit used up, with a wait", everyOpenAI,
			retry(problem(modelserver.ProblemQuota), modelserver.RetryAfter{Seconds: new(9)}),
			want{v1beta1.ErrorUsageLimitReached, false, 429, 0, ""}},
		{"no access to the model", everyOpenAI, problem(modelserver.ProblemNoAccess),
			want{v1beta1.ErrorModelNotFound, false, 403, 0, "does not have access to model"}},
		{"no access to the model", onlyClaude, problem(modelserver.ProblemNoAccess),
			want{v1beta1.ErrorModelNotFound, false, 404, 0, "has no model some-model"}},
		{"more than the rate", everyOpenAI, problem(modelserver.ProblemTooMuchAtOnce),
			want{v1beta1.ErrorContextTooLong, false, 429, 0, "rate of tokens"}},
		{"too large", onlyClaude, problem(modelserver.ProblemTooMuchAtOnce),
			want{v1beta1.ErrorContextTooLong, false, 413, 0, ""}},
		{"content", everyone, problem(modelserver.ProblemContent),
			want{v1beta1.ErrorContentFiltered, false, 400, 0, "A content filter of"}},
		{"disabled", everyOpenAI, problem(modelserver.ProblemDisabled),
			want{v1beta1.ErrorProviderDisabled, false, 401, 0, "has been deactivated"}},
		{"disabled", onlyClaude, problem(modelserver.ProblemDisabled),
			want{v1beta1.ErrorProviderDisabled, false, 400, 0, "has been disabled"}},
		{"setting", everyone, problem(modelserver.ProblemSetting),
			want{v1beta1.ErrorRequestRejected, false, 400, 0, "temperature"}},
		{"history", everyone, problem(modelserver.ProblemHistory),
			want{v1beta1.ErrorHistoryRejected, false, 400, 0, "rejected the message history"}},
		{"capacity", everyOpenAI, problem(modelserver.ProblemCapacity), want{v1beta1.ErrorOverloaded, again, 503, 0, ""}},
		{"capacity", onlyClaude, problem(modelserver.ProblemCapacity), want{v1beta1.ErrorOverloaded, again, 529, 0, ""}},
		{"too long", everyone, modelserver.Fault{Kind: modelserver.FaultContextTooLong},
			want{v1beta1.ErrorContextTooLong, false, 400, 0, "Start a new chat"}},

		{"wait in seconds", everyone, retry(plain429, modelserver.RetryAfter{Seconds: new(7)}),
			want{v1beta1.ErrorRateLimited, again, 429, 7 * time.Second, ""}},
		{"wait in milliseconds before seconds", everyone,
			retry(plain429, modelserver.RetryAfter{Milliseconds: new(2500), Seconds: new(60)}),
			want{v1beta1.ErrorRateLimited, again, 429, 3 * time.Second, ""}},
		{"wait in parts of a second", everyone, header(status(529), "Retry-After", "0.25"),
			want{v1beta1.ErrorOverloaded, again, 529, time.Second, ""}},
		{"wait until a date", everyone, retry(status(504), modelserver.RetryAfter{Date: &half}),
			want{v1beta1.ErrorProviderUnavailable, again, 504, 30 * time.Minute, ""}},
		{"wait of a day", everyone, retry(plain429, modelserver.RetryAfter{Date: &day}),
			want{v1beta1.ErrorRateLimited, again, 429, time.Hour, ""}},
		{"told to try again", everyone, header(status(400), "X-Should-Retry", "true"),
			want{v1beta1.ErrorRequestRejected, again, 400, 0, ""}},
		{"told not to try again", everyone, header(status(500), "x-should-retry", "false"),
			want{v1beta1.ErrorProviderError, false, 500, 0, ""}},
		{"a wrong key, told to try again", everyone, header(status(401), "x-should-retry", "true"),
			want{v1beta1.ErrorAuthenticationFailed, false, 401, 0, ""}},

		{"a proxy's 403", everyone, page(403), want{v1beta1.ErrorPermissionDenied, false, 403, 0, ""}},
		{"a proxy's 404", everyone, page(404), want{v1beta1.ErrorRequestRejected, false, 404, 0, "baseURL"}},
		{"a proxy's 502", everyone, page(502), want{v1beta1.ErrorProviderUnavailable, again, 502, 0, ""}},
		{"a proxy's 524", everyone, page(524), want{v1beta1.ErrorProviderUnavailable, again, 524, 0, ""}},

		{"lost before the head", everyone, modelserver.Fault{Kind: modelserver.FaultReset},
			want{v1beta1.ErrorProviderUnavailable, again, 0, 0, ""}},
		{"lost in the middle", everyone, within(modelserver.Fault{}, modelserver.FaultCut),
			want{v1beta1.ErrorProviderUnavailable, again, 0, 0, ""}},
		{"ended in the middle", everyone, within(modelserver.Fault{}, modelserver.FaultEnd),
			want{v1beta1.ErrorProviderUnavailable, again, 0, 0, "before its end"}},

		{"overloaded within the stream", everyone, within(problem(modelserver.ProblemCapacity), modelserver.FaultError),
			want{v1beta1.ErrorOverloaded, again, 0, 0, "no capacity"}},
		{"limited within the stream", everyOpenAI, within(status(429), modelserver.FaultError),
			want{v1beta1.ErrorRateLimited, again, 0, 20 * time.Second, ""}},
		{"limited within the stream", onlyClaude, within(status(429), modelserver.FaultError),
			want{v1beta1.ErrorRateLimited, again, 0, 0, ""}},
		{"failed within the stream", everyone, within(status(500), modelserver.FaultError),
			want{v1beta1.ErrorProviderError, again, 0, 0, ""}},
		{"used up within the stream", everyone, within(problem(modelserver.ProblemQuota), modelserver.FaultError),
			want{v1beta1.ErrorUsageLimitReached, false, 0, 0, ""}},
		{"rejected within the stream", everyone, within(problem(modelserver.ProblemSetting), modelserver.FaultError),
			want{reason: v1beta1.ErrorRequestRejected}},
		{"too long within the stream", everyOpenAI, within(tooLong, modelserver.FaultError),
			want{v1beta1.ErrorContextTooLong, false, 0, 0, ""}},
		{"a failed reply", everyone, within(status(500), modelserver.FaultFailed),
			want{v1beta1.ErrorProviderError, again, 0, 0, ""}},
		{"a limited reply", []providertest.Protocol{providertest.Responses}, within(status(429), modelserver.FaultFailed),
			want{v1beta1.ErrorRateLimited, again, 0, 20 * time.Second, ""}},
	}
}
