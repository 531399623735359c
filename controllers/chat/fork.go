// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/kube/denial"
	"parley.dev/parley/internal/text/content"
)

const (
	// copiesAtOnce is how many messages of a fork are created at once: a few requests keep the API server busy.
	copiesAtOnce = 8
	// forkRetry is how often a fork that cannot have its history looks again.
	forkRetry = plan.ManifestPatience
)

// forker copies the history that a fork begins with. What a crash interrupts is continued: the names of the copies
// follow from the fork and the source.
type forker struct {
	// client writes; live reads past the cache.
	client client.Client
	live   client.Reader
	// files is where the files of messages are; nil: nowhere.
	files *archive.Store
}

// problemError is why a fork cannot have its history, for people.
type problemError struct{ conditions.ForkProblem }

func (e *problemError) Error() string { return e.Message }

func problem(reason v1beta1.ConditionReason, format string, args ...any) error {
	return &problemError{conditions.ForkProblem{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// fork gives a chat the history that spec.fork names. The chat says first that it takes a while.
func (r *Reconciler) fork(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.facts.Chat.Status.ObservedGeneration < s.facts.Chat.Generation {
		todo := plan.Forking(s.facts, nil)
		return ctrl.Result{RequeueAfter: 1}, r.report(ctx, s, &todo)
	}
	// From an old view of a chat that has begun, copies that somebody has deleted would be created again.
	if yet, err := r.actuator.yetToBegin(ctx, s.facts.Chat); err != nil || !yet {
		return ctrl.Result{}, err
	}
	copied, err := r.forker.copy(ctx, s.facts.Chat)
	if why, ok := errors.AsType[*problemError](err); ok {
		todo := plan.Forking(s.facts, &why.ForkProblem)
		return ctrl.Result{RequeueAfter: forkRetry}, r.report(ctx, s, &todo)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("copying the history for chat %s/%s: %w", s.facts.Chat.Namespace, s.facts.Chat.Name,
			err)
	}
	todo, err := plan.Forked(s.facts, copied)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: 1}, r.report(ctx, s, &todo)
}

// copy creates the copies of the messages, and then those of their files.
func (f *forker) copy(ctx context.Context, chat *v1beta1.Chat) (*plan.Fork, error) {
	source, fork, err := f.read(ctx, chat)
	if err != nil {
		return nil, err
	}
	uids, err := f.create(ctx, fork, false)
	if err != nil {
		return nil, err
	}
	fork.Link(uids)
	if _, err = f.create(ctx, fork, true); err != nil {
		return nil, err
	}
	if chat.Spec.Prompt != "" { // It is taken up after the history.
		if _, err := f.createOne(ctx, plan.PromptMessage(chat)); err != nil {
			return nil, err
		}
	}
	if f.files == nil {
		return fork, nil
	}
	for _, m := range fork.Messages {
		for _, digest := range content.StoredFiles(m) {
			if err := f.files.Files().Copy(ctx, chat.Namespace, string(source.UID), string(chat.UID), digest); err != nil {
				return nil, err
			}
		}
	}
	return fork, nil
}

// read reads the history to copy, as the API server has it.
func (f *forker) read(ctx context.Context, chat *v1beta1.Chat) (*v1beta1.Chat, *plan.Fork, error) {
	from := chat.Spec.Fork
	var source v1beta1.Chat
	err := f.live.Get(ctx, types.NamespacedName{Namespace: chat.Namespace, Name: from.Chat}, &source)
	if apierrors.IsNotFound(err) {
		return nil, nil, problem(v1beta1.ReasonForkSourceNotFound,
			"Chat %s, which spec.fork names, does not exist: create it, or create a fork of another chat", from.Chat)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading chat %s: %w", from.Chat, err)
	}
	var list v1beta1.ChatMessageList
	if err := f.live.List(ctx, &list, client.InNamespace(chat.Namespace),
		client.MatchingFields{"spec.chatRef.name": from.Chat}); err != nil {
		return nil, nil, fmt.Errorf("listing the messages of chat %s: %w", from.Chat, err)
	}
	fork := plan.ForkOf(chat, &source, list.Items)
	if fork == nil {
		return nil, nil, problem(v1beta1.ReasonForkSourceNotFound, "The history of chat %s does not have message %s, which "+
			"spec.fork names: create a fork of a message with the state Committed, or of a reply", from.Chat, from.Message)
	}
	return &source, fork, nil
}

// create creates the generated messages of a fork, or the others, as far as they do not exist.
func (f *forker) create(ctx context.Context, fork *plan.Fork, generated bool) (map[string]types.UID, error) {
	var mu sync.Mutex
	uids := map[string]types.UID{}
	at, ctx := errgroup.WithContext(ctx)
	at.SetLimit(copiesAtOnce)
	for _, m := range fork.Messages {
		if (m.Spec.Generation != nil) != generated {
			continue
		}
		at.Go(func() error {
			uid, err := f.createOne(ctx, m)
			mu.Lock()
			defer mu.Unlock()
			uids[m.Name] = uid
			return err
		})
	}
	return uids, at.Wait()
}

func (f *forker) createOne(ctx context.Context, m *v1beta1.ChatMessage) (types.UID, error) {
	created := m.DeepCopy() // The answer has no status.
	err := f.client.Create(ctx, created)
	if apierrors.IsAlreadyExists(err) {
		err = f.live.Get(ctx, client.ObjectKeyFromObject(m), created)
		if from := v1beta1.AnnotationRestoredFrom; err == nil && created.Annotations[from] != m.Annotations[from] {
			return "", problem(v1beta1.ReasonForkRejected, "Message %s has the name of a copied message and is none: "+
				"delete it, and the fork continues", m.Name)
		}
	}
	if words := denial.Of(err, m.Name); words != "" {
		return "", problem(v1beta1.ReasonForkRejected, "The API server refuses message %s of the fork: %s", m.Name, words)
	}
	if err != nil {
		return "", fmt.Errorf("creating message %s: %w", m.Name, err)
	}
	return created.UID, nil
}
