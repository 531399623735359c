// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chatstate"
	"parley.dev/parley/internal/clip"
)

// elsewhere are the errors that are no reason to try the same model again, but of which another one knows nothing. All other
// errors that do not pass are about the request: another model would be asked the same, or must not be.
var elsewhere = []v1alpha1.ErrorReason{
	v1alpha1.ErrorAuthenticationFailed, v1alpha1.ErrorPermissionDenied, v1alpha1.ErrorUsageLimitReached, v1alpha1.ErrorProviderDisabled,
	v1alpha1.ErrorTLSFailed, v1alpha1.ErrorModelNotFound, v1alpha1.ErrorAPIKeyMissing, v1alpha1.ErrorModelConfigNotFound, v1alpha1.ErrorModelConfigInvalid,
}

// nextTry is the attempt that follows a failed one; nil if there is none. A model that failed for good is not asked again in
// this step. The models are asked in their order, one at once after the other; before the first comes again there is a wait,
// which doubles with each round and is never shorter than what the provider asked for.
func nextTry(models []Alternative, policy *v1alpha1.RetryPolicy, failed *v1alpha1.GenerationStatus, e *v1alpha1.GenerationError, now time.Time) *v1alpha1.RetryStatus {
	retry := &v1alpha1.RetryStatus{
		Attempt: failed.Attempt, Reason: e.Reason, Message: e.Message, At: metav1.NewMicroTime(now), RuledOut: slices.Clone(failed.RuledOut),
	}
	if !e.Retryable {
		if !slices.Contains(elsewhere, e.Reason) {
			return nil
		}
		retry.RuledOut = append(retry.RuledOut, failed.ModelConfig)
	}
	at := slices.IndexFunc(models, func(m Alternative) bool { return m.Config == failed.ModelConfig })
	next, wrapped := following(models, at, retry.RuledOut)
	if next < 0 || failed.Attempt >= policy.MaxAttemptsOrDefault() {
		return nil
	}
	retry.ModelConfig = models[next].Config
	if wrapped {
		round := (int(failed.Attempt) - 1) / len(models)
		retry.At = metav1.NewMicroTime(now.Add(max(backoff(policy, round), e.RetryAfter())))
	}
	return retry
}

// following is the first model after the one at that is not ruled out, from the beginning again if need be; -1 if there is none.
func following(models []Alternative, at int, ruledOut []string) (next int, wrapped bool) {
	for i := 1; i <= len(models); i++ {
		next = (at + i) % len(models)
		if !slices.Contains(ruledOut, models[next].Config) {
			return next, at >= 0 && next <= at
		}
	}
	return -1, false
}

// backoff is the wait after a round of attempts, counted from 0.
func backoff(policy *v1alpha1.RetryPolicy, round int) time.Duration {
	delay, most := policy.InitialDelayOrDefault(), policy.MaxDelayOrDefault()
	for range round {
		if delay >= most {
			break
		}
		delay *= 2
	}
	return min(delay, most)
}

// tryAgain goes on after an attempt that failed, or ends the turn.
func (p *pass) tryAgain(e v1alpha1.GenerationError) error {
	st := p.status()
	if p.mayCompactInstead(&e) {
		return p.compactInstead(e)
	}
	failed := *st.Generation
	var retry *v1alpha1.RetryStatus
	if model, _ := p.answering(); model != nil {
		retry = nextTry(model.forAction(failed.Action), model.Retry, &failed, &e, p.facts.Now)
	}
	if retry == nil {
		if failed.Attempt > 1 {
			e.Message = clip.Ellipsis(fmt.Sprintf("Attempt %d failed, too. %s", failed.Attempt, e.Message), maxMessage)
		}
		return p.fail(e)
	}
	if err := p.fire(chatstate.RecordRetry, subject{retry: retry}); err != nil {
		return err
	}
	return p.goOn()
}

// maxMessage is the most characters of an error's message, as the API bounds it.
const maxMessage = 1024

// nextModel is the model that the next attempt at the action asks. The caller has made sure that there is one.
func (p *pass) nextModel(action v1alpha1.GenerationAction) Alternative {
	model, _ := p.answering()
	st, models := p.status(), model.forAction(action)
	wanted := ""
	switch {
	case st.Retry != nil:
		wanted = st.Retry.ModelConfig
	case st.Generation != nil: // It was lost: that says nothing about the model.
		wanted = st.Generation.ModelConfig
	}
	if i := slices.IndexFunc(models, func(m Alternative) bool { return m.Config == wanted }); i >= 0 {
		return models[i]
	}
	return models[0]
}

func (p *pass) nextAttempt(action v1alpha1.GenerationAction) {
	st, model := p.status(), p.nextModel(action)
	next := &v1alpha1.GenerationStatus{
		Attempt: 1, Action: action, ModelConfig: model.Config, StartedAt: metav1.NewMicroTime(p.facts.Now),
		HasSubChats: p.facts.HasSubChats,
	}
	switch {
	case st.Retry != nil:
		next.Attempt, next.RuledOut = st.Retry.Attempt+1, st.Retry.RuledOut
	case st.Generation != nil:
		next.Attempt, next.RuledOut = st.Generation.Attempt+1, st.Generation.RuledOut
	}
	st.Generation, st.Retry = next, nil
	st.Model = model.Name
	p.plan.NeedsPod = true
}
