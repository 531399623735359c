// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/machine"
	"parley.dev/parley/internal/text/clip"
)

// loseAttempt makes the attempt under way again, with another pod: the first time at once, then after waits that
// double like those after failures. Whatever takes one pod of a step after the other is not mended by haste.
func loseAttempt(p *pass) error {
	lost, internal := *p.status().Generation, inherited(&p.status().Internal.Attempt)
	internal.LostAttempts++
	losses := internal.LostAttempts
	reason, message := describeLoss(p, &lost)
	p.notice(v1beta1.EventAttemptLost, v1beta1.EventActionGenerate, message)
	if lost.Attempt >= maxAttempts(p) {
		return failAfter(p, attemptsExhausted(&lost, losses, reason, message), lostEnd(p))
	}
	retry := &v1beta1.RetryStatus{
		Attempt: lost.Attempt, Action: lost.Action, FailedAt: metav1.NewMicroTime(p.facts.Now), Reason: reason,
		Message: message, At: metav1.NewMicroTime(p.facts.Now), ModelConfig: lost.ModelConfig,
	}
	if model, _ := answeringModel(p); model != nil && losses > 1 {
		retry.At = metav1.NewMicroTime(p.facts.Now.Add(backoff(model.Retry, int(losses)-2)))
	}
	if err := p.fire(machine.AttemptLost, subject{retry: &attemptRecord{next: retry, internal: internal},
		attempt: lostEnd(p)}); err != nil {
		return err
	}
	return proceed(p)
}

// describeLoss says which attempt was lost, and why.
func describeLoss(p *pass, lost *v1beta1.GenerationStatus) (v1beta1.ErrorReason, string) {
	message := fmt.Sprintf("Generation pod %s was lost during attempt %d", lost.Pod, lost.Attempt)
	if attempts.NameConflict(p.chat, p.status(), p.facts.Result) {
		return v1beta1.ErrorResultNameConflict,
			clip.Ellipsis(fmt.Sprintf("Attempt %d can have no result: message %s, which it did not create, has its name",
				lost.Attempt, p.facts.Result.Name), maxMessage)
	}
	if attemptOverdue(p) {
		message = fmt.Sprintf("Attempt %d timed out after %s", lost.Attempt, attemptTime(lost.Action))
	}
	if !p.facts.PodLost && resultDeleted(p) {
		message = fmt.Sprintf("The result of attempt %d is lost: message %s was deleted before it was in the history",
			lost.Attempt, p.facts.Deleted.Name)
	}
	if p.facts.PodLost && p.facts.PodLostBy != "" {
		message += ": " + p.facts.PodLostBy
	}
	return v1beta1.ErrorGenerationPodLost, clip.Ellipsis(message, maxMessage)
}

// attemptGone reports whether the attempt under way has no result and will have none.
func attemptGone(p *pass) bool {
	return p.facts.PodLost || attemptOverdue(p) || resultDeleted(p) ||
		attempts.NameConflict(p.chat, p.status(), p.facts.Result)
}

// attemptOverdue reports whether the pod of the attempt under way is there, and has had all the time for it.
func attemptOverdue(p *pass) bool { return !p.facts.PodLost && Overdue(p.status(), p.facts.Now) }

// resultDeleted reports whether somebody has deleted the answer to the attempt under way before it was committed. The
// pod gives none again.
func resultDeleted(p *pass) bool {
	return p.facts.Result == nil && attempts.AnswersCurrentAttempt(p.chat, p.status(), p.facts.Deleted)
}

// attemptsExhausted is the error of a step whose last attempt was lost.
func attemptsExhausted(lost *v1beta1.GenerationStatus, losses int32, why v1beta1.ErrorReason,
	last string) v1beta1.GenerationError {
	if why == v1beta1.ErrorResultNameConflict {
		return v1beta1.GenerationError{
			Reason: why, Message: last,
			Advice: "Delete that message, find out who creates such, then send a message to continue",
		}
	}
	count := fmt.Sprintf("The step was tried %d times, and %d of the attempts were lost with their generation pods",
		lost.Attempt, losses)
	return v1beta1.GenerationError{
		Reason:  v1beta1.ErrorAttemptsExhausted,
		Message: clip.Ellipsis(count+". "+last, maxMessage),
		Advice:  "See the pods' events and logs, then send a message to continue",
	}
}
