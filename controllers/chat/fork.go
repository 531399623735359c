// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/kube/denial"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/text/content"
)

const (
	// copiesAtOnce is how many messages of a fork are created at once: a few requests keep the API server busy.
	copiesAtOnce = 8
	// forksAtOnce is how many histories are in memory at once. Each may have hundreds of megabytes.
	forksAtOnce = 2
	// forkRetry is how often a fork that cannot have its history looks again, and forkPause after ManifestPatience.
	forkRetry, forkPause = plan.ManifestPatience, time.Minute
)

// forker copies the history that a fork begins with. What a crash interrupts is continued: the names of the copies
// follow from the fork and the source.
type forker struct {
	// client writes; live reads past the cache.
	client client.Client
	live   client.Reader
	// files is where the files of messages are; nil: nowhere.
	files   *archive.Store
	running limit.Limiter
	now     func() time.Time
}

// problemError is why a fork cannot have its history, for people.
type problemError struct{ conditions.ForkProblem }

func (e *problemError) Error() string { return e.Message }

func problem(reason v1beta1.ConditionReason, format string, args ...any) error {
	return &problemError{conditions.ForkProblem{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// fork gives a chat the history that spec.fork names, unless it is archived. The chat says first that it takes a while.
func (r *Reconciler) fork(ctx context.Context, s *scope) (ctrl.Result, error) {
	if chat := s.facts.Chat; chat.Spec.Archived || chat.Status.ObservedGeneration < chat.Generation {
		return r.reportForking(ctx, s, nil)
	}
	if !r.forker.running.TryAcquire(1) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	defer r.forker.running.Release(1)
	// From an old view of a chat that has begun, copies that somebody has deleted would be created again.
	if waits, err := r.actuator.yetToBegin(ctx, s.facts.Chat); err != nil || !waits {
		return ctrl.Result{}, err
	}
	var copied *plan.Fork
	err := r.copyWorkspace(ctx, s)
	if err == nil {
		copied, err = r.forker.copy(ctx, s.facts.Chat)
	}
	if why, ok := errors.AsType[*problemError](err); ok {
		return r.reportForking(ctx, s, &why.ForkProblem)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("copying the history for chat %s/%s: %w", s.facts.Chat.Namespace, s.facts.Chat.Name,
			err)
	}
	todo, err := plan.Forked(s.facts, copied)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("taking the copied history: %w", err)
	}
	return ctrl.Result{RequeueAfter: 1}, r.report(ctx, s, &todo)
}

// reportForking reports that the chat does not have its history yet, and what prevents that; nil: nothing.
func (r *Reconciler) reportForking(ctx context.Context, s *scope, why *conditions.ForkProblem) (ctrl.Result, error) {
	todo := plan.Forking(s.facts, why)
	if err := r.report(ctx, s, &todo); err != nil {
		return ctrl.Result{}, err
	}
	r.observer.observeWait(s.facts.Chat, &todo)
	switch {
	case todo.Status.Archived:
		return ctrl.Result{}, nil
	case why == nil:
		return ctrl.Result{RequeueAfter: 1}, nil
	case why.MayPass:
		return ctrl.Result{RequeueAfter: forkRetry}, nil
	}
	return ctrl.Result{RequeueAfter: forkPause}, nil
}

// copy creates the copies of the messages, and of their files.
func (f *forker) copy(ctx context.Context, chat *v1beta1.Chat) (*plan.Fork, error) {
	source, fork, err := f.read(ctx, chat)
	if err != nil {
		return nil, err
	}
	if err := f.copyMessages(ctx, chat, fork); err != nil {
		return nil, err
	}
	if chat.Spec.Prompt != "" { // It is taken up after the history.
		if _, err := f.createOne(ctx, chat, plan.PromptMessage(chat)); err != nil {
			return nil, err
		}
	}
	return fork, f.copyFiles(ctx, source, chat, fork.Messages)
}

// copyMessages creates the messages of people and clients first: generated ones record their UIDs. The newest generated
// one comes last, when the others are settled: a cache that shows it shows them all.
func (f *forker) copyMessages(ctx context.Context, chat *v1beta1.Chat, fork *plan.Fork) error {
	var people, generated []*v1beta1.ChatMessage
	for _, m := range fork.Messages {
		if m.Spec.Generation == nil {
			people = append(people, m)
		} else {
			generated = append(generated, m)
		}
	}
	created, err := f.create(ctx, chat, people)
	if err != nil {
		return err
	}
	uids := map[string]types.UID{}
	for name, m := range created {
		uids[name] = m.UID
	}
	fork.Link(uids)
	newest := max(0, len(generated)-1)
	if _, err := f.create(ctx, chat, generated[:newest]); err != nil {
		return err
	}
	if err := f.settle(ctx, fork.Settled(f.now()), created); err != nil {
		return err
	}
	_, err = f.create(ctx, chat, generated[newest:])
	return err
}

// copyFiles copies the files of messages from the object storage of the source to that of the chat.
func (f *forker) copyFiles(ctx context.Context, source, chat *v1beta1.Chat, messages []*v1beta1.ChatMessage) error {
	if f.files == nil {
		return nil
	}
	for _, m := range messages {
		for _, digest := range content.StoredFiles(m) {
			err := f.files.Files().Copy(ctx, chat.Namespace, string(source.UID), string(chat.UID), digest)
			if errors.Is(err, archive.ErrNotFound) {
				continue // Both chats show it as missing.
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// source reads the chat that the fork continues.
func (f *forker) source(ctx context.Context, chat *v1beta1.Chat) (*v1beta1.Chat, error) {
	var source v1beta1.Chat
	name := chat.Spec.Fork.Chat
	err := f.live.Get(ctx, types.NamespacedName{Namespace: chat.Namespace, Name: name}, &source)
	if apierrors.IsNotFound(err) {
		return nil, problem(v1beta1.ReasonForkSourceNotFound,
			"Chat %s, which spec.fork names, does not exist: create it, or create a fork of another chat", name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading chat %s: %w", name, err)
	}
	return &source, nil
}

// read reads the history to copy, as the API server has it.
func (f *forker) read(ctx context.Context, chat *v1beta1.Chat) (*v1beta1.Chat, *plan.Fork, error) {
	from := chat.Spec.Fork
	source, err := f.source(ctx, chat)
	if err != nil {
		return nil, nil, err
	}
	if source.Annotations[v1beta1.AnnotationRedacting] != "" {
		return nil, nil, problem(v1beta1.ReasonForking, "Text is being removed from chat %s: the fork waits for the end",
			from.Chat)
	}
	var list v1beta1.ChatMessageList
	if err := f.live.List(ctx, &list, client.InNamespace(chat.Namespace),
		client.MatchingFields{"spec.chatRef.name": from.Chat}); err != nil {
		return nil, nil, fmt.Errorf("listing the messages of chat %s: %w", from.Chat, err)
	}
	fork, err := plan.ForkOf(chat, source, list.Items)
	if edited, ok := errors.AsType[*plan.EditedError](err); ok {
		return nil, nil, problem(v1beta1.ReasonForking, "Message %s of chat %s was edited: the fork waits until that chat "+
			"continues from there", edited.Message, from.Chat)
	}
	if err != nil {
		return nil, nil, problem(v1beta1.ReasonForkSourceNotFound, "The history of chat %s does not have message %s, which "+
			"spec.fork names: create a fork of a message with the state Committed, or of a reply", from.Chat, from.Message)
	}
	return source, fork, nil
}

// each does something with each of the messages, a few at once, and returns the first error.
func each(ctx context.Context, messages []*v1beta1.ChatMessage,
	do func(context.Context, *v1beta1.ChatMessage) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(copiesAtOnce)
	for _, m := range messages {
		group.Go(func() error { return do(ctx, m) })
	}
	return group.Wait()
}

// create creates the messages that do not exist yet, and returns all of them by name.
func (f *forker) create(ctx context.Context, chat *v1beta1.Chat, messages []*v1beta1.ChatMessage,
) (map[string]*v1beta1.ChatMessage, error) {
	var mu sync.Mutex
	all := map[string]*v1beta1.ChatMessage{}
	return all, each(ctx, messages, func(ctx context.Context, m *v1beta1.ChatMessage) error {
		created, err := f.createOne(ctx, chat, m)
		mu.Lock()
		defer mu.Unlock()
		all[m.Name] = created
		return err
	})
}

func (f *forker) createOne(ctx context.Context, chat *v1beta1.Chat, m *v1beta1.ChatMessage,
) (*v1beta1.ChatMessage, error) {
	created, err := f.createNew(ctx, m)
	if apierrors.IsAlreadyExists(err) {
		var existing v1beta1.ChatMessage
		switch err = f.live.Get(ctx, client.ObjectKeyFromObject(m), &existing); {
		case err != nil:
		case !isCopy(chat, &existing, m):
			return nil, problem(v1beta1.ReasonForkRejected, "Another message has the name %s, which the fork needs: delete it",
				m.Name)
		case isCurrent(&existing, m):
			return &existing, nil
		default:
			created, err = f.replace(ctx, &existing, m)
		}
	}
	if words := denial.Of(err, m.Name); words != "" {
		return nil, problem(v1beta1.ReasonForkRejected, "The API server refuses message %s of the fork: %s", m.Name, words)
	}
	if err != nil {
		return nil, fmt.Errorf("creating message %s: %w", m.Name, err)
	}
	return created, nil
}

func (f *forker) createNew(ctx context.Context, m *v1beta1.ChatMessage) (*v1beta1.ChatMessage, error) {
	created := m.DeepCopy() // The answer has no status.
	created.Generation, created.UID = 0, ""
	return created, f.client.Create(ctx, created)
}

// replace deletes an outdated copy and creates the current one: the original was edited or redacted since.
func (f *forker) replace(ctx context.Context, old, m *v1beta1.ChatMessage) (*v1beta1.ChatMessage, error) {
	is := client.Preconditions{UID: &old.UID, ResourceVersion: &old.ResourceVersion}
	if err := f.client.Delete(ctx, old, is); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	return f.createNew(ctx, m)
}

// isCurrent reports whether a copy has what its original has by now.
func isCurrent(copied, wanted *v1beta1.ChatMessage) bool {
	redacted := v1beta1.AnnotationRedacted
	return equality.Semantic.DeepEqual(copied.Spec, wanted.Spec) &&
		copied.Annotations[redacted] == wanted.Annotations[redacted]
}

// isCopy reports whether the message was created for this chat, and not for an earlier one of its name.
func isCopy(chat *v1beta1.Chat, m, wanted *v1beta1.ChatMessage) bool {
	if !m.DeletionTimestamp.IsZero() || !metav1.IsControlledBy(m, chat) {
		return false
	}
	if from := v1beta1.AnnotationRestoredFrom; wanted.Annotations[from] != "" {
		return m.Annotations[from] == wanted.Annotations[from]
	}
	return plan.IsPrompt(chat, m)
}

// settle writes the statuses of messages. Otherwise the chatmessage controller would read the history for each.
func (f *forker) settle(ctx context.Context, settled []*v1beta1.ChatMessage, created map[string]*v1beta1.ChatMessage,
) error {
	return each(ctx, settled, func(ctx context.Context, m *v1beta1.ChatMessage) error {
		now := created[m.Name]
		if now.Status.State == v1beta1.MessageCommitted { // It was written before a crash.
			return nil
		}
		now.Status = m.Status
		if err := f.client.Status().Update(ctx, now); err != nil {
			return fmt.Errorf("writing the status of message %s: %w", m.Name, err)
		}
		return nil
	})
}
