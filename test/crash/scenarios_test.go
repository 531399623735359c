// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// scenario is what happens around the manager.
type scenario struct {
	// name is a sentence.
	name string
	// bare begins without a ChatModelConfig.
	bare bool
	// does is what users and generation pods do, in order.
	does []step
	// ends says what the end looks like; nil: atRest.
	ends func(*snapshot) bool
	// everyWrite lets every write fail, the preparation of the namespace included,
	// not only those about chats and messages.
	everyWrite bool
}

// beingAnswered means that the chat's prompt says so, which it does a second after the attempt began: what the manager
// writes later is then the same in each run.
var beingAnswered = reason("c-prompt", v1beta1.ReasonAnswering)

// scenarios are all of them.
var scenarios = slices.Concat(goingOn, steering, families, deletions)

// atRest means that nothing is left to do: the chat waits for a message, every message has had its last word, and
// nothing lies about.
func atRest(s *snapshot) bool {
	if s.chat == nil || len(s.messages) == 0 {
		return false
	}
	st := &s.chat.Status
	idle := st.Phase == v1beta1.ChatWaiting || st.Phase == v1beta1.ChatError
	if !idle || len(st.Queue) > 0 || st.Generation != nil || st.ObservedGeneration != s.chat.Generation {
		return false
	}
	// What has left the history is being put aside for as long as the chat says so.
	return st.Internal.Superseded == nil && allSettled(s) && (s.sub == nil || atRest(s.sub))
}

func allSettled(s *snapshot) bool {
	for i := range s.messages {
		m := &s.messages[i]
		if m.Spec.Generation == nil && !settled(m) {
			return false
		}
	}
	chain, err := s.chain()
	return err == nil && len(s.strays(chain)) == 0
}

// settled means that the newest content of a User message has had its last word.
func settled(m *v1beta1.ChatMessage) bool {
	r := ready(m.Status.Conditions)
	return m.Status.ObservedGeneration == m.Generation &&
		(r.Status == metav1.ConditionTrue || r.Status == metav1.ConditionFalse)
}

// nothingLeft means that chats and messages are gone.
func nothingLeft(s *snapshot) bool { return s.chat == nil && len(s.messages) == 0 && s.sub == nil }
