// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/machine"
)

// InterruptPatience is how long an interrupted attempt has to hand over what it has: 15 s. After that it is given up.
const InterruptPatience = 15 * time.Second

// stopAttempt tells the attempt under way to stop. One that no pod has begun has nothing to hand over.
func stopAttempt(p *pass) error {
	st := p.status()
	switch {
	case st.Generation == nil || p.begins():
		setAttempt(st, attemptRecord{})
		return finishInterruption(p, nil)
	case st.Generation.InterruptedAt == nil:
		st.Generation.InterruptedAt = new(metav1.NewMicroTime(p.facts.Now))
		return endInterrupted(p) // It may have ended already.
	}
	return nil
}

// endInterrupted ends the interruption if the attempt has handed over what it had, or never will.
func endInterrupted(p *pass) error {
	st := p.status()
	switch {
	case st.Generation != nil && attempts.AnswersCurrentAttempt(p.chat, st, p.facts.Result):
		return finishInterruption(p, p.facts.Result)
	case st.Generation == nil || st.Generation.InterruptedAt == nil || attemptGone(p),
		p.facts.Now.Sub(st.Generation.InterruptedAt.Time) >= InterruptPatience:
		return finishInterruption(p, nil)
	}
	return nil
}

func finishInterruption(p *pass, result *v1beta1.ChatMessage) error {
	end := interruptedEnd(p, result)
	if result == nil && p.underWay != nil && attemptGone(p) {
		end = lostEnd(p)
	}
	if result != nil && !hasOutput(result) {
		accountStep(p, result) // It is paid for, although nothing of it is kept.
		result = nil
	}
	if err := p.fire(machine.FinishInterruption, subject{result: result, ending: v1beta1.TurnInterrupted,
		attempt: end}); err != nil {
		return err
	}
	return proceed(p)
}

// hasOutput reports whether an attempt that was told to stop has something to keep.
// It may have been done just then.
func hasOutput(result *v1beta1.ChatMessage) bool {
	switch result.Spec.Generation.Outcome {
	case v1beta1.OutcomeCompleted:
		return true
	case v1beta1.OutcomeInterrupted:
		return len(result.Spec.Parts) > 0
	}
	return false
}
