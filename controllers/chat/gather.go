// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/pods/modellimits"
)

// scope is everything that one reconcile has read.
type scope struct {
	facts plan.Facts
	// classes are the namespace's ChatClasses.
	classes []v1beta1.ChatClass
	// configs are the namespace's ChatModelConfigs. Those that are confirmed are as the API server has them.
	configs   []v1beta1.ChatModelConfig
	confirmed map[string]bool
	// unsettled are the messages of people and clients in the chat that have yet to be dealt with.
	unsettled []v1beta1.ChatMessage
	// whole is the history as the API server has it; nil: it has not been read.
	whole *plan.Whole
	// modelCall is the call that the next step would make, if its model was asked for a place.
	modelCall *modellimits.Call
	// podGone is true when the pod of the attempt under way no longer exists.
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
func (s *scope) stored() *v1beta1.Chat {
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
	classes     classLister
	models      modelReader
	family      familyReader
	memory      *memory
	now         func() time.Time
}

func newGatherer(o *Options, m *memory) *gatherer {
	return &gatherer{
		cache: o.Client, live: o.Live, pods: o.Pods, memory: m, now: o.Now,
		classes: newClassLister(o),
		models:  modelReader{cache: o.Client, live: o.Live, calls: o.Calls},
		family: familyReader{cache: o.Client, live: o.Live, written: &m.written, costs: &m.costs,
			idle: &m.idle},
	}
}

// gather reads everything a decision needs, and changes nothing. It returns nil when there is no chat to work on.
func (g *gatherer) gather(ctx context.Context, key types.NamespacedName) (*scope, error) {
	chat, err := g.readChat(ctx, key)
	if err != nil || chat == nil {
		return nil, err
	}
	s := &scope{facts: plan.Facts{Chat: chat, Now: g.now(), Suspended: chat.Spec.Suspend, Requests: plan.RequestsOf(chat)}}
	if chat.IsRestoring() || chat.IsForking() { // Its history is incomplete.
		return s, nil
	}
	for _, read := range []func(context.Context, *scope) error{
		g.readChain,         // A turn that it takes up again depends on the model.
		g.readUnsettled,     // Before the classes, which have to be as new as a chat's first message.
		g.classes.readClass, // What follows goes by the settings that are in force.
		g.models.readModel,
		g.family.readFamily, // Where the chat may not be, no model answers.
		g.readAttempt,
		g.readQueue,
		g.readOpen, // Clients' results are among the open messages.
		g.readResults,
		g.readApprovals,
		g.family.readSubChats,
		g.family.readRest,
		g.memory.readArchive,
		g.models.readAdvisor,
	} {
		if err := read(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// readChat reads the chat as it is after this process's own last write;
// nil if there is none, or if it is being deleted.
func (g *gatherer) readChat(ctx context.Context, key types.NamespacedName) (*v1beta1.Chat, error) {
	reader := g.cache
	if g.memory.written.takeStale(key) {
		reader = g.live
	}
	var chat v1beta1.Chat
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
	var chat v1beta1.Chat
	if g.cache.Get(ctx, key, &chat) == nil {
		g.memory.written.newest(&chat)
	}
}

// isGone reports whether there is no such chat, not even one that is being deleted.
func (g *gatherer) isGone(ctx context.Context, key types.NamespacedName) (bool, error) {
	var chat v1beta1.Chat
	err := g.cache.Get(ctx, key, &chat)
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// readMessage is the message of that name; nil if there is none. A note that has taken the name of one is none to a
// chat: it was never said, is not answered, and its status is not the chat's to write.
func readMessage(ctx context.Context, reader client.Reader, namespace, name string) (*v1beta1.ChatMessage,
	error) {
	m, err := readAny(ctx, reader, namespace, name)
	if err != nil || m == nil || m.Spec.IsNote() {
		return nil, err
	}
	return m, nil
}

// readAny is the message of that name, notes included; nil if there is none.
func readAny(ctx context.Context, reader client.Reader, namespace, name string) (*v1beta1.ChatMessage,
	error) {
	var m v1beta1.ChatMessage
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &m)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading message %s: %w", name, err)
	}
	return &m, nil
}
