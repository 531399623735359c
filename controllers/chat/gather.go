// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/index"
	"parley.dev/parley/internal/turn"
)

// seen is all that one pass has read.
type seen struct {
	facts turn.Facts
	// configs are the namespace's ChatModelConfigs, as the cache shows them, or as they are when configsLive is true.
	configs     []v1alpha1.ChatModelConfig
	configsLive bool
	// orphan is true when the chat's parent has been deleted.
	orphan bool
	// results names the Tool messages of clients that have not been taken.
	results []string
	// applied names the ToolApprovals that count and do not say so yet.
	applied []string
	// lookAgain is when time alone may change the decision; zero: never.
	lookAgain time.Duration
}

// gather reads everything a decision needs. It returns nil when there is no chat to work on.
func (r *Reconciler) gather(ctx context.Context, req ctrl.Request) (*seen, error) {
	chat, err := r.readChat(ctx, req.NamespacedName)
	if err != nil || chat == nil {
		return nil, err
	}
	s := &seen{facts: turn.Facts{Chat: chat, Now: r.Now(), Suspended: chat.Spec.Suspend, Requests: requestsOf(chat)}}
	for _, read := range []func(context.Context, *seen) error{
		r.readModel, r.readFamily, r.readAttempt, r.readSummary, r.readChain, r.readQueue, r.readOpen, r.readAction, r.readSubChats, r.readCapacity,
		r.readNamedModels, r.readAdvisor,
	} {
		if err := read(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (r *Reconciler) readChat(ctx context.Context, key types.NamespacedName) (*v1alpha1.Chat, error) {
	reader := client.Reader(r.Client)
	if r.written.takeStale(key) {
		reader = r.Live
	}
	var chat v1alpha1.Chat
	err := reader.Get(ctx, key, &chat)
	if apierrors.IsNotFound(err) {
		r.written.forget(key)
		r.chains.forget(key)
		r.Ledger.Book(key.String(), "")
		r.Gate.Leave(key)
		return nil, r.refuseApprovals(ctx, key)
	}
	if err != nil {
		return nil, fmt.Errorf("reading chat %s: %w", key, err)
	}
	newest := r.written.newest(&chat)
	if !newest.DeletionTimestamp.IsZero() || !chat.DeletionTimestamp.IsZero() {
		r.Ledger.Book(keyOf(newest).String(), "")
		r.Gate.Leave(key)
		return nil, nil
	}
	return newest, nil
}

// readAttempt reads the result of the attempt under way, and how its pod is.
func (r *Reconciler) readAttempt(ctx context.Context, s *seen) error {
	chat := s.facts.Chat
	if chat.Status.Generation == nil {
		return nil
	}
	result, err := r.message(ctx, r.Client, chat.Namespace, ResultName(chat))
	if err != nil {
		return err
	}
	s.facts.Result = result
	return r.readPod(ctx, s)
}

// ResultName is the name of the message that answers the chat's attempt under way.
func ResultName(chat *v1alpha1.Chat) string {
	return fmt.Sprintf("%s-%d-%d", chat.Name, chat.Status.History.Version, chat.Status.Generation.Attempt)
}

// readQueue reads the queued messages. That the cache does not show one does not prove that it was deleted.
func (r *Reconciler) readQueue(ctx context.Context, s *seen) error {
	for _, queued := range s.facts.Chat.Status.Queue {
		for _, reader := range []client.Reader{r.Client, r.Live} {
			message, err := r.message(ctx, reader, s.facts.Chat.Namespace, queued.Name)
			if err != nil {
				return err
			}
			if message != nil {
				s.facts.Queued = append(s.facts.Queued, messageFacts(message))
				break
			}
		}
	}
	return nil
}

func messageFacts(m *v1alpha1.ChatMessage) turn.Message {
	facts := turn.Message{
		Name: m.Name, Interrupts: m.Spec.WhenBusy == v1alpha1.WhenBusyInterrupt, ContentHash: index.ContentHash(m),
		Effort:  m.Spec.ReasoningEffort,
		Created: m.CreationTimestamp.Time, Traceparent: traceparentOf(m),
	}
	if ref := m.Spec.ModelConfigRef; ref != nil {
		facts.ModelConfig = ref.Name
	}
	return facts
}

// readOpen finds the messages of people that have yet to be taken up: User messages in the order to take them, the chat's
// prompt first, then by age and name; clients' results; and the first message that was edited.
func (r *Reconciler) readOpen(ctx context.Context, s *seen) error {
	chat := s.facts.Chat
	var messages v1alpha1.ChatMessageList
	err := r.Client.List(ctx, &messages, client.InNamespace(chat.Namespace), client.MatchingFields{index.UnsettledByChat: chat.Name})
	if err != nil {
		return fmt.Errorf("listing open messages: %w", err)
	}
	var open []v1alpha1.ChatMessage
	for i := range messages.Items {
		switch m := &messages.Items[i]; {
		case m.Spec.Role == v1alpha1.RoleUser && isOpen(chat, m):
			open = append(open, *m)
		case m.Spec.Role == v1alpha1.RoleUser:
			s.noteEdit(m)
		case isOpen(chat, m):
			s.results = append(s.results, m.Name)
		}
	}
	if err := r.confirmEdit(ctx, s); err != nil {
		return err
	}
	if open, err = r.withPrompt(ctx, chat, open); err != nil {
		return err
	}
	slices.SortFunc(open, func(a, b v1alpha1.ChatMessage) int { return takeOrder(chat, &a, &b) })
	return r.confirmOpen(ctx, s, open)
}

// confirmOpen notes the messages that are open beyond doubt.
func (r *Reconciler) confirmOpen(ctx context.Context, s *seen, open []v1alpha1.ChatMessage) error {
	for i := range open {
		if still, err := r.stillOpen(ctx, s.facts.Chat, &open[i]); err != nil {
			return err
		} else if still {
			s.facts.Open = append(s.facts.Open, messageFacts(&open[i]))
		}
	}
	return nil
}

// confirmEdit looks at the message itself: the cache may show an older one of its name.
func (r *Reconciler) confirmEdit(ctx context.Context, s *seen) error {
	if s.facts.Edited == nil {
		return nil
	}
	live, err := r.message(ctx, r.Live, s.facts.Chat.Namespace, s.facts.Edited.Name)
	s.facts.Edited = nil
	if live != nil {
		s.noteEdit(live)
	}
	return err
}

// noteEdit takes the message down if it was edited and none before it was.
func (s *seen) noteEdit(m *v1alpha1.ChatMessage) {
	if edited := editedOf(s.facts.Chat, m); edited != nil && (s.facts.Edited == nil || edited.Index < s.facts.Edited.Index) {
		s.facts.Edited = edited
	}
}

// isOpen tells whether a User message is neither in the history nor in the queue, nor of an earlier chat of this name.
func isOpen(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) bool {
	switch {
	case !m.DeletionTimestamp.IsZero(), m.Status.State == v1alpha1.MessageCommitted:
		return false
	case refused(m):
		return false
	case m.Status.ChatUID != "" && m.Status.ChatUID != string(chat.UID):
		return false
	case placedByChat(chat, m.Name):
		return false
	}
	return !slices.ContainsFunc(chat.Status.Queue, func(q v1alpha1.QueuedMessage) bool { return q.Name == m.Name })
}

// refused tells whether the message was rejected or superseded, and has not been changed since, which asks anew.
func refused(m *v1alpha1.ChatMessage) bool {
	switch m.Status.State {
	case v1alpha1.MessageRejected, v1alpha1.MessageSuperseded:
		return m.Status.ObservedGeneration == m.Generation
	}
	return false
}

// editedOf is the message and its place, if it is committed and no longer says what it said then.
func editedOf(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) *turn.Edited {
	if !m.DeletionTimestamp.IsZero() {
		return nil
	}
	edited := &turn.Edited{Message: messageFacts(m)}
	if t := chat.Status.Turn; t != nil && t.Message == m.Name {
		edited.Parent, edited.Index = t.Parent, t.Index
		if t.ContentHash == edited.ContentHash {
			return nil
		}
		return edited
	}
	st := &m.Status
	if st.State != v1alpha1.MessageCommitted || st.ChatUID != string(chat.UID) || st.Index == nil || st.ContentHash == edited.ContentHash ||
		outside(chat, st) {
		return nil
	}
	edited.Parent, edited.Index = st.Parent, *st.Index
	return edited
}

// outside tells whether a committed message has left the history and is about to be put aside.
func outside(chat *v1alpha1.Chat, st *v1alpha1.ChatMessageStatus) bool {
	r := chat.Status.History.Superseded
	return *st.Index >= chat.Status.History.Length || r != nil && *st.Index >= r.FromIndex && st.HistoryVersion < r.BeforeVersion
}

// stillOpen makes sure that no earlier turn took the message up, which the cache may not show yet. Before a turn's record
// is replaced, its message says that it was committed. So a message whose newest known write is later than the chat's
// last one says all there is to say: resourceVersions of custom resources count the writes of one store. Otherwise the
// API server is asked; the chat was read first, so that the answer is late enough.
func (r *Reconciler) stillOpen(ctx context.Context, chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) (bool, error) {
	if older(chat.ResourceVersion, m.ResourceVersion) {
		return true, nil
	}
	live, err := r.message(ctx, r.Live, m.Namespace, m.Name)
	if err != nil || live == nil {
		return false, err
	}
	return live.UID == m.UID && isOpen(chat, live), nil
}

// withPrompt creates the message that spec.prompt stands for, if the chat has not begun.
func (r *Reconciler) withPrompt(ctx context.Context, chat *v1alpha1.Chat, open []v1alpha1.ChatMessage) ([]v1alpha1.ChatMessage, error) {
	if chat.Spec.Prompt == "" || chat.Status.History.Version > 0 {
		return open, nil
	}
	name := promptName(chat)
	if slices.ContainsFunc(open, func(m v1alpha1.ChatMessage) bool { return m.Name == name }) {
		return open, nil
	}
	prompt := promptMessage(chat)
	err := r.Client.Create(ctx, prompt)
	if apierrors.IsAlreadyExists(err) {
		// The cache does not show it yet; or a chat of the same name left it behind, and its removal wakes this chat again.
		there, err := r.message(ctx, r.Live, chat.Namespace, name)
		if err != nil || there == nil || there.Spec.ChatRef.Name != chat.Name || !isOpen(chat, there) {
			return nil, err
		}
		return append(open, *there), nil
	}
	if err != nil {
		return nil, fmt.Errorf("creating message %s for spec.prompt: %w", name, err)
	}
	return append(open, *prompt), nil
}

func takeOrder(chat *v1alpha1.Chat, a, b *v1alpha1.ChatMessage) int {
	if prompt := promptName(chat); a.Name == prompt || b.Name == prompt {
		if a.Name == prompt {
			return -1
		}
		return 1
	}
	if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// message reads a message; nil if there is none.
func (r *Reconciler) message(ctx context.Context, reader client.Reader, namespace, name string) (*v1alpha1.ChatMessage, error) {
	var m v1alpha1.ChatMessage
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &m)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading message %s: %w", name, err)
	}
	return &m, nil
}
