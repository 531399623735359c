// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/machine"
	"parley.dev/parley/internal/text/clip"
)

// fallbackReasons rule out the model that failed, but not its fallbacks. All other errors that are not retryable are
// about the request: another model would be asked the same, or must not be.
var fallbackReasons = []v1beta1.ErrorReason{
	v1beta1.ErrorAuthenticationFailed, v1beta1.ErrorPermissionDenied, v1beta1.ErrorUsageLimitReached,
	v1beta1.ErrorProviderDisabled,
	v1beta1.ErrorTLSFailed, v1beta1.ErrorModelNotFound, v1beta1.ErrorAPIKeyMissing, v1beta1.ErrorModelConfigNotFound,
	v1beta1.ErrorModelConfigInvalid,
	v1beta1.ErrorModelConfigDisabled,
}

// AsksFallbacks reports whether the fallbacks of a model are asked after an error with that reason that is not
// retryable.
func AsksFallbacks(reason v1beta1.ErrorReason) bool { return slices.Contains(fallbackReasons, reason) }

// nextTry is the attempt that follows a failed one; nil if there is none. A model that failed for good is not asked
// again in this step. The models are asked in their order, one at once after the other; before the first comes again
// there is a wait, which doubles with each round. One whose provider asked to wait is passed over for as long as
// another one can be asked sooner.
func nextTry(models []Alternative, policy *v1beta1.RetryPolicy, last attemptRecord, e *v1beta1.GenerationError,
	now time.Time) *attemptRecord {
	failed := last.underWay
	retry := &attemptRecord{internal: inherited(&last.internal), next: &v1beta1.RetryStatus{
		Attempt: failed.Attempt, Action: failed.Action, FailedAt: metav1.NewMicroTime(now), Reason: e.Reason,
		Message: e.Message, Provider: e.Provider, StatusCode: e.StatusCode,
	}}
	retry.internal.RetryAfter = retryAfters(last, e, now)
	if !e.Retryable {
		if !AsksFallbacks(e.Reason) {
			return nil
		}
		retry.internal.ExcludedModels = append(retry.internal.ExcludedModels, failed.ModelConfig)
	}
	if failed.Attempt >= mostAttempts(models, policy, e.Reason) {
		return nil
	}
	again := now.Add(backoff(policy, round(models, retry)))
	setNext(retry, models, failed.ModelConfig, now, again)
	if retry.next.ModelConfig == "" {
		return nil
	}
	return retry
}

// maxPaidAttempts is how often a step is tried whose calls are paid for although they fail, unless there are more
// models to ask.
const maxPaidAttempts = 5

// mostAttempts is how often a step is tried that failed for that reason.
func mostAttempts(models []Alternative, policy *v1beta1.RetryPolicy, reason v1beta1.ErrorReason) int32 {
	most := policy.MaxAttemptsOrDefault()
	if reason == v1beta1.ErrorEmptyReply || reason == v1beta1.ErrorReplyFailed {
		return min(most, max(maxPaidAttempts, int32(len(models))))
	}
	return most
}

// round counts how often all the models that can still be asked have failed,
// from 0. A lost attempt says nothing about a model.
func round(models []Alternative, retry *attemptRecord) int {
	in := &retry.internal
	left := len(models) - len(in.ExcludedModels)
	return max(0, int(retry.next.Attempt-in.LostAttempts)-1-len(in.ExcludedModels)) / max(1, left)
}

// setNext chooses the model that can be asked soonest: those behind the one that failed now,
// the others again after a wait.
func setNext(retry *attemptRecord, models []Alternative, failed string, now, again time.Time) {
	at := slices.IndexFunc(models, func(m Alternative) bool { return m.Config == failed })
	for i := range models { // In the order in which they follow the one that failed, which is the last itself.
		next := (at + 1 + i) % len(models)
		name, ready := models[next].Config, now
		if at >= 0 && next <= at {
			ready = again
		}
		if asked := retryAfterOf(retry.internal.RetryAfter, name); asked.After(ready) {
			ready = asked
		}
		if !slices.Contains(retry.internal.ExcludedModels, name) &&
			(retry.next.ModelConfig == "" || ready.Before(retry.next.At.Time)) {
			retry.next.ModelConfig, retry.next.At = name, metav1.NewMicroTime(ready)
		}
	}
}

// retryAfters are what providers have asked for in the step, as far as it is not over.
func retryAfters(last attemptRecord, e *v1beta1.GenerationError, now time.Time) []v1beta1.ModelRetryAfter {
	failed := last.underWay.ModelConfig
	var asked []v1beta1.ModelRetryAfter
	for _, before := range last.internal.RetryAfter {
		if before.ModelConfig != failed && before.Time.After(now) {
			asked = append(asked, before)
		}
	}
	if after := e.RetryAfter(); after > 0 {
		asked = append(asked, v1beta1.ModelRetryAfter{ModelConfig: failed, Time: metav1.NewMicroTime(now.Add(after))})
	}
	return asked[max(0, len(asked)-v1beta1.MaxModelRetryAfters):]
}

// retryAfterOf is until when the provider of a model asked to be left alone; zero if it did not.
func retryAfterOf(asked []v1beta1.ModelRetryAfter, config string) time.Time {
	for _, a := range asked {
		if a.ModelConfig == config {
			return a.Time.Time
		}
	}
	return time.Time{}
}

// backoff is the wait after a round of attempts, counted from 0.
func backoff(policy *v1beta1.RetryPolicy, round int) time.Duration {
	delay, most := policy.InitialDelayOrDefault(), policy.MaxDelayOrDefault()
	for range round {
		if delay >= most {
			break
		}
		delay *= 2
	}
	return min(delay, most)
}

// retryOrFail begins the next attempt after one that failed, or ends the turn.
func retryOrFail(p *pass, e v1beta1.GenerationError) error {
	st := p.status()
	learnContextLimit(p, &e)
	last, end := attemptsOf(st), endOfAttempt(p, p.facts.Result)
	failed := last.underWay
	if compactInstead(p, &e, end) {
		return proceed(p)
	}
	models, policy := availableModels(p, failed)
	retry := nextTry(models, policy, last, &e, p.facts.Now)
	if retry == nil {
		if failed.Attempt > 1 {
			e.Message = clip.Ellipsis(fmt.Sprintf("Attempt %d failed, too. %s", failed.Attempt, e.Message), maxMessage)
		}
		return failAfter(p, e, end)
	}
	noticeSummarizer(p, failed, &e)
	end.Retried = true
	if err := p.fire(machine.RecordRetry, subject{retry: retry, attempt: end}); err != nil {
		return err
	}
	return proceed(p)
}

// availableModels are the models that may be asked after an attempt that failed, and how often; none if none answers
// the chat. While its class or its model does not exist that is not known: the attempt waits for it, and it is
// decided again then.
func availableModels(p *pass, failed *v1beta1.GenerationStatus) ([]Alternative, *v1beta1.RetryPolicy) {
	if model, _ := answeringModel(p); model != nil {
		return withPrices(p, model.forAction(failed.Action)), model.Retry
	}
	if missingReference(p) != nil {
		return []Alternative{{Config: failed.ModelConfig}}, nil
	}
	return nil, nil
}

// maxMessage is the most characters of an error's message, as the API bounds it.
const maxMessage = 1024

// nextModel is the model that the next attempt at the action asks: the one that is next, or while its provider asks to
// wait, the first other one that may be asked now, or else the one that may be asked soonest. The caller has made sure
// that there is one.
func nextModel(p *pass, action v1beta1.GenerationAction) Alternative {
	model, _ := answeringModel(p)
	models := withPrices(p, model.forAction(action))
	first := nextInOrder(p, models)
	best := models[first]
	for i := range models {
		next := models[(first+i)%len(models)]
		switch {
		case excludedModels(p, next):
		case !p.facts.Now.Before(next.NotBefore):
			return next
		case next.NotBefore.Before(best.NotBefore):
			best = next
		}
	}
	return best
}

// nextInOrder is the index of the model that is next, whether it may be asked now or not.
func nextInOrder(p *pass, models []Alternative) int {
	st := p.status()
	if st.Retry == nil {
		return 0
	}
	named := func(m Alternative) bool { return m.Config == st.Retry.ModelConfig }
	if i := slices.IndexFunc(models, named); i >= 0 {
		return i
	}
	// The one that was wanted has been taken out of the configuration since.
	return max(0, slices.IndexFunc(models, func(m Alternative) bool { return !excludedModels(p, m) }))
}

// excludedModels reports whether the model has failed for good in this step.
func excludedModels(p *pass, m Alternative) bool {
	st := p.status()
	return st.Retry != nil && slices.Contains(st.Internal.Attempt.ExcludedModels, m.Config)
}
