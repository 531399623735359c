// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/text/content"
	"parley.dev/parley/internal/text/printable"
)

const (
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
	// Its retention can be that of its class.
	if err := errors.Join(r.gatherer.classes.readClass(ctx, s), r.memory.readArchive(ctx, s)); err != nil {
		return ctrl.Result{}, err
	}
	todo := plan.Forking(s.facts, why)
	if todo.DiscardsArchive {
		r.archiver.discardStale(ctx, s.facts.Chat)
	}
	if err := r.report(ctx, s, &todo); err != nil {
		return ctrl.Result{}, err
	}
	r.observer.observeWait(s.facts.Chat, &todo)
	if todo.Expires {
		return r.expire(ctx, s)
	}
	return ctrl.Result{RequeueAfter: plan.Sooner(forkWait(&todo, why), todo.Again)}, nil
}

// forkWait is when a fork looks again for its history; 0: once it is changed.
func forkWait(todo *plan.Plan, why *conditions.ForkProblem) time.Duration {
	switch {
	case todo.Status.Archived:
		return 0
	case why == nil:
		return 1
	case why.MayPass:
		return forkRetry
	}
	return forkPause
}

// copy creates the copies of the messages, and of their files.
func (f *forker) copy(ctx context.Context, chat *v1beta1.Chat) (*plan.Fork, error) {
	source, fork, err := f.read(ctx, chat)
	if err != nil {
		return nil, err
	}
	messages, err := f.list(ctx, chat.Namespace, chat.Name)
	if err != nil {
		return nil, err
	}
	c := copies{forker: f, chat: chat, existing: map[string]*v1beta1.ChatMessage{}}
	for i := range messages {
		c.existing[messages[i].Name] = &messages[i]
	}
	if err := c.createAll(ctx, fork); err != nil {
		return nil, err
	}
	if chat.Spec.Prompt != "" { // It is taken up after the history.
		if _, err := c.createOne(ctx, plan.PromptMessage(chat)); err != nil {
			return nil, err
		}
	}
	return fork, f.copyFiles(ctx, source, chat, fork.Messages)
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
			if err != nil && ctx.Err() == nil {
				return problem(v1beta1.ReasonForking, "The files of chat %s cannot be copied: %s. The fork tries again until "+
					"they are", source.Name, printable.Line(archive.Reason(err)))
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
	messages, err := f.list(ctx, chat.Namespace, from.Chat)
	if err != nil {
		return nil, nil, err
	}
	fork, err := plan.ForkOf(chat, source, messages)
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

// list lists the messages of a chat, as the API server has them.
func (f *forker) list(ctx context.Context, namespace, chat string) ([]v1beta1.ChatMessage, error) {
	var list v1beta1.ChatMessageList
	if err := f.live.List(ctx, &list, client.InNamespace(namespace),
		client.MatchingFields{"spec.chatRef.name": chat}); err != nil {
		return nil, fmt.Errorf("listing the messages of chat %s: %w", chat, err)
	}
	return list.Items, nil
}
