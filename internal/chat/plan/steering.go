// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/machine"
)

// archive archives the chat or takes it back. While that is not possible yet, the chat waits and takes no new work up,
// so that it becomes possible. A chat that has not begun is in no state of the machine: it is archived as it stands.
func archive(p *pass) error {
	if p.facts.Archive == p.status().Archived {
		return nil
	}
	if p.state() == machine.None { // It has nothing to come to rest from.
		p.status().Archived = p.facts.Archive
		return nil
	}
	event := machine.Unarchive
	if p.facts.Archive {
		event = machine.Archive
	}
	if p.try(event, subject{}) == "" && p.status().Phase == v1beta1.ChatWaiting {
		p.status().Queue = nil // All of it is held, and open again.
	}
	return nil
}

// repairState brings a chat whose status somebody else has changed back to a state that there is.
func repairState(p *pass) error {
	if p.state() != machine.Invalid {
		return nil
	}
	st := p.status()
	return p.fire(machine.ReconcileInvalid, subject{err: &v1beta1.GenerationError{
		Reason: v1beta1.ErrorStateInvalid,
		Message: fmt.Sprintf("The status had phase %s with %d queued messages, which must not be: something other than "+
			"Parley has changed it",
			st.Phase, len(st.Queue)),
		Advice: "Send a message to continue",
	}})
}

// handleRequests acts on request annotations, once per token.
func handleRequests(p *pass) error {
	for _, request := range p.facts.Requests {
		reason, why := answerRequest(p, request.Kind)
		handled := v1beta1.HandledRequest{
			Kind: request.Kind, Token: request.Token, Outcome: v1beta1.RequestDone, Time: metav1.NewTime(p.facts.Now),
		}
		if why != "" {
			handled.Outcome, handled.Message = v1beta1.RequestRefused, why
			p.notice(reason, v1beta1.EventAction(request.Kind), fmt.Sprintf("%s was refused: %s", request.Kind, why))
		} else if err := followPhase(p); err != nil {
			return err
		}
		recordRequest(p, handled)
	}
	return nil
}

// requested are the events that requests ask for.
var requested = map[v1beta1.RequestKind]machine.Event{
	v1beta1.RequestInterrupt: machine.Interrupt,
	v1beta1.RequestClear:     machine.ClearContext,
	v1beta1.RequestCompact:   machine.RequestCompaction,
}

// answerRequest does what is asked, or says why not.
func answerRequest(p *pass, kind v1beta1.RequestKind) (reason v1beta1.EventReason, why string) {
	switch kind {
	case v1beta1.RequestTitle:
		return v1beta1.EventTitleNotWritten, askTitle(p)
	case v1beta1.RequestRefreshContext:
		return v1beta1.EventContextNotRefreshed, refreshContext(p)
	}
	refused := p.try(requested[kind], subject{compaction: v1beta1.CompactionManual})
	return v1beta1.EventReason(refused), refused.Meaning()
}

func recordRequest(p *pass, handled v1beta1.HandledRequest) {
	st := p.status()
	st.Requests = slices.DeleteFunc(st.Requests, func(r v1beta1.HandledRequest) bool { return r.Kind == handled.Kind })
	st.Requests = append(st.Requests, handled)
}
