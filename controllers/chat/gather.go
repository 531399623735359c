// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/modellimits"
)

// scope is everything that one reconcile has read.
type scope struct {
	facts plan.Facts
	// classes are the namespace's ChatClasses.
	classes []v1alpha1.ChatClass
	// basis is the newest resourceVersion of what the decision rests on, as far as a manifest or a person has written it:
	// no class and no model that was there by then is missing.
	basis string
	// judged is how new what was read is in which a class or a model is missing; empty: none is.
	judged string
	// defaultUnread is true when the cache shows no default class, and the API server was not asked, as nothing was said.
	defaultUnread bool
	// configs are the namespace's ChatModelConfigs. They are known to be as new as configsAsOf; empty: nothing is known.
	// configsLive is true when they are as the API server had them in this pass.
	configs     []v1alpha1.ChatModelConfig
	configsAsOf string
	configsLive bool
	// modelCall is the call that the next step would make, if its model was asked for a place.
	modelCall *modellimits.Call
	// podGone is true when the pod of the attempt under way does not exist any more.
	podGone bool
	// orphan is true when the chat's parent has been deleted.
	orphan bool
	// results names the Tool messages of clients that have not been taken.
	results []string
	// applied names the ToolApprovals that count and do not say so yet.
	applied []string
	// lookAgain is when time alone may change the decision; zero: never.
	lookAgain time.Duration
}

// stored is the chat as the API server has it, without what its class adds.
func (s *scope) stored() *v1alpha1.Chat {
	if s.facts.Class != nil {
		return s.facts.Class.Said
	}
	return s.facts.Chat
}

// gatherer reads what a decision needs. It has nothing that could write.
type gatherer struct {
	// cache shows objects as the watches last did; live reads past it.
	cache, live client.Reader
	pods        Pods
	fresh       *freshReader
	classes     classReader
	models      modelReader
	family      familyReader
	memory      *memory
	now         func() time.Time
}

func newGatherer(o *Options, m *memory) *gatherer {
	fresh := newFreshReader(o)
	return &gatherer{
		cache: o.Client, live: o.Live, pods: o.Pods, memory: m, now: o.Now, fresh: fresh,
		classes: classReader{cache: o.Client, live: o.Live, fresh: fresh},
		models:  modelReader{cache: o.Client, fresh: fresh, calls: o.Calls},
		family:  familyReader{cache: o.Client, live: o.Live, written: &m.written},
	}
}

// outdatedError means that more was written while a pass read, so that what is missing in it may be there.
type outdatedError struct {
	// basis is the resourceVersion that what is read next has to be as new as.
	basis string
}

func (e *outdatedError) Error() string {
	return "more was written while it was read, so that what is missing may be there by resourceVersion " + e.basis
}

// gather reads everything a decision needs, and changes nothing. The decision rests on what was written up to basis, if
// not on more; empty: on what is read alone. It returns nil when there is no chat to work on, and an outdatedError when
// it has to be read again, from another basis.
func (g *gatherer) gather(ctx context.Context, key types.NamespacedName, basis string) (*scope, error) {
	chat, err := g.readChat(ctx, key)
	if err != nil || chat == nil {
		return nil, err
	}
	s := &scope{basis: basis,
		facts: plan.Facts{Chat: chat, Now: g.now(), Suspended: chat.Spec.Suspend, Requests: plan.RequestsOf(chat)}}
	s.restOn(g.fresh.specWritten(chat))
	if len(s.facts.Requests) > 0 { // An annotation is no part of the spec.
		s.restOn(chat.ResourceVersion)
	}
	for _, read := range []func(context.Context, *scope) error{
		g.readChain,         // A turn that it takes up again depends on the model.
		g.classes.readClass, // What follows goes by the settings that are in force.
		g.models.readModel,
		g.family.readFamily, // Where the chat may not be, no model answers.
		g.readAttempt,
		g.readQueue,
		g.readOpen,     // Clients' results are among the open messages.
		g.readReported, // It matters if one of those begins a turn.
		g.readResults,
		g.readApprovals,
		g.family.readSubChats,
		g.family.readRest,
		g.models.readAdvisor,
	} {
		if err := read(ctx, s); err != nil {
			return nil, err
		}
	}
	if s.isOutdated() {
		return nil, fmt.Errorf("reading chat %s: %w", key, &outdatedError{basis: s.basis})
	}
	return s, nil
}

// isOutdated reports whether a class or a model is missing in something older than what the decision rests on. A
// default class has something to say to every first step.
func (s *scope) isOutdated() bool {
	begins := s.facts.Chat.Status.History.Version == 0 && len(s.facts.Open) > 0
	return older(s.judged, s.basis) || s.defaultUnread && begins
}

// restOn says that the decision rests on a write of that resourceVersion.
func (s *scope) restOn(version string) {
	if s.basis == "" || older(s.basis, version) {
		s.basis = version
	}
}

// judge says that a class or a model is missing in what is as new as that resourceVersion.
func (s *scope) judge(asOf string) {
	if s.judged == "" || older(asOf, s.judged) {
		s.judged = asOf
	}
}

// absenceEndsTurn reports whether a turn can fail for want of its class or its model. What was said to a chat at rest
// waits for both. A turn that is under way or taken up again does not, nor does what begins by an edit, by a request or
// from the queue.
func (s *scope) absenceEndsTurn(said []v1alpha1.ChatMessage) bool {
	chat := s.facts.Chat
	switch chat.Status.Phase {
	case v1alpha1.ChatRunning, v1alpha1.ChatInterrupting, v1alpha1.ChatRequiresAction:
		return true
	}
	edited := func(m v1alpha1.ChatMessage) bool { return !plan.IsOpen(chat, &m) } // Or about to be settled.
	return s.facts.Truncated != nil || len(s.facts.Requests)+len(chat.Status.Queue) > 0 ||
		slices.ContainsFunc(said, edited)
}

// readChat reads the chat as it is after this process's own last write;
// nil if there is none, or if it is being deleted.
func (g *gatherer) readChat(ctx context.Context, key types.NamespacedName) (*v1alpha1.Chat, error) {
	reader := g.cache
	if g.memory.written.takeStale(key) {
		reader = g.live
	}
	var chat v1alpha1.Chat
	err := reader.Get(ctx, key, &chat)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading chat %s: %w", key, err)
	}
	newest := g.memory.written.newest(&chat)
	if !newest.DeletionTimestamp.IsZero() || !chat.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return newest, nil
}

// forgetShown forgets what was written last to the chat if the cache shows it already. Otherwise the event that brings
// it there does so: a chat that has nothing more to do is not looked at again.
func (g *gatherer) forgetShown(ctx context.Context, key types.NamespacedName) {
	var chat v1alpha1.Chat
	if g.cache.Get(ctx, key, &chat) == nil {
		g.memory.written.newest(&chat)
	}
}

// isGone reports whether there is no such chat, not even one that is being deleted.
func (g *gatherer) isGone(ctx context.Context, key types.NamespacedName) (bool, error) {
	var chat v1alpha1.Chat
	err := g.cache.Get(ctx, key, &chat)
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// readMessage is the message of that name; nil if there is none. A note that has taken the name of one is none to a
// chat: it was never said, is not answered, and its status is not the chat's to write.
func readMessage(ctx context.Context, reader client.Reader, namespace, name string) (*v1alpha1.ChatMessage,
	error) {
	m, err := readAny(ctx, reader, namespace, name)
	if err != nil || m == nil || m.Spec.IsNote() {
		return nil, err
	}
	return m, nil
}

// readAny is the message of that name, notes included; nil if there is none.
func readAny(ctx context.Context, reader client.Reader, namespace, name string) (*v1alpha1.ChatMessage,
	error) {
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
