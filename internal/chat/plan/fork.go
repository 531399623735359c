// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/chat/machine"
)

// Fork is the history that a chat continues from another one.
type Fork struct {
	// Messages are the copies, oldest first. Those of people and clients can be created; the generated ones name the UIDs
	// of those, and can be created after Link.
	Messages []*v1beta1.ChatMessage
	chat     *v1beta1.Chat
	source   *v1beta1.ChatStatus
	// tail are the commits behind the newest generated message.
	tail    []v1beta1.CommittedMessage
	version int64
	// names of the copies by those of the originals.
	names map[string]string
}

// ForkOf copies the part of a history that spec.fork of the chat names; nil if the history does not have the message.
// It changes the statuses of messages, which are all those of the source.
func ForkOf(chat, source *v1beta1.Chat, messages []v1beta1.ChatMessage) *Fork {
	whole := WholeOf(source, messages)
	end := 1 + slices.IndexFunc(whole.Chain, func(n history.Node) bool { return n.Name == chat.Spec.Fork.Message })
	if end == 0 {
		return nil
	}
	whole.Chain, whole.Messages = whole.Chain[:end], whole.Messages[:end]
	f := &Fork{chat: chat, source: &source.Status, tail: whole.Rest().Tail, names: map[string]string{}}
	for i, m := range whole.Messages {
		f.names[m.Name] = copyName(chat, m, i)
		f.version = max(f.version, whole.Chain[i].Version)
	}
	f.rename(f.tail)
	for _, m := range whole.Messages {
		f.Messages = append(f.Messages, f.copyOf(m))
	}
	return f
}

// copyName is the name of the copy of a message. That of a generated one follows from its fence, as for all of them.
func copyName(chat *v1beta1.Chat, m *v1beta1.ChatMessage, index int) string {
	if m.Spec.Generation != nil {
		return attempts.Answered(m).ResultName(chat.Name)
	}
	return fmt.Sprintf("%s-from-%d", chat.Name, index)
}

func (f *Fork) copyOf(m *v1beta1.ChatMessage) *v1beta1.ChatMessage {
	c := &v1beta1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.chat.Namespace, Name: f.names[m.Name], Labels: m.Labels, Annotations: maps.Clone(m.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f.chat, v1beta1.GroupVersion.WithKind("Chat"))},
		},
		Spec: *m.Spec.DeepCopy(), Status: *m.Status.DeepCopy(),
	}
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1beta1.AnnotationRestoredFrom, string(m.UID))
	c.Spec.ChatRef.Name = f.chat.Name
	c.Spec.Parent, c.Status.Parent = f.names[m.Spec.Parent], f.names[m.Status.Parent]
	f.rename(c.Spec.Follows)
	if g := c.Spec.Generation; g != nil {
		g.ChatUID = string(f.chat.UID)
	} else {
		c.Status.ChatUID = string(f.chat.UID)
	}
	return c
}

func (f *Fork) rename(commits []v1beta1.CommittedMessage) {
	for i := range commits {
		c := &commits[i]
		c.Message, c.Parent = f.names[c.Message], f.names[c.Parent]
		if c.PreviousTurn != nil {
			c.PreviousTurn.Message = f.names[c.PreviousTurn.Message]
		}
	}
}

// Link enters the UIDs of the copies of people's and clients' messages, by name, where their commits are recorded.
func (f *Fork) Link(uids map[string]types.UID) {
	enter := func(commits []v1beta1.CommittedMessage) {
		for i := range commits {
			commits[i].UID = string(uids[commits[i].Message])
		}
	}
	enter(f.tail)
	for _, m := range f.Messages {
		m.UID = cmp.Or(uids[m.Name], m.UID)
		enter(m.Spec.Follows)
	}
}

// rest describes the copied history. Calls without a result are given up: the source may have run them meanwhile.
func (f *Fork) rest() *Truncated {
	chat, messages := f.chat.DeepCopy(), make([]v1beta1.ChatMessage, 0, len(f.Messages))
	for _, m := range f.Messages {
		messages = append(messages, *m)
	}
	chat.Status.History.Head, chat.Status.History.Length = f.Messages[len(f.Messages)-1].Name, int64(len(f.Messages))
	chat.Status.Internal.Tail = f.tail
	whole := WholeOf(chat, messages)
	t := whole.Rest()
	if in := &t.Turn.Internal; t.Turn.TurnStatus != nil && in.PendingCalls > 0 {
		t.Unanswered, t.Turn.Result = false, v1beta1.TurnInterrupted
		cancelPendingCalls(t.Turn.TurnStatus, in, v1beta1.CallsEdited)
	}
	return t
}

// Forked is the plan for a chat whose history has been copied: it has that from now on.
func Forked(f Facts, fork *Fork) (Plan, error) {
	f.Truncated = fork.rest()
	p := &pass{facts: f, chat: f.Chat, plan: Plan{Status: *f.Chat.Status.DeepCopy()}}
	if err := p.fire(machine.Fork, subject{fork: fork}); err != nil {
		return Plan{}, err
	}
	conditions.Chat(p.status(), conditions.ChatFacts{Generation: f.Chat.Generation, Now: f.Now})
	return p.plan, nil
}

// takeHistory begins with the copied history. Its version is as high as that of the newest copy.
func takeHistory(p *pass, from *Fork) {
	st := p.status()
	st.History.Version, st.Internal.ContextBoundaries = from.version, slices.Clone(from.source.Internal.ContextBoundaries)
	continueFrom(p, p.facts.Truncated)
	backToContext(p)
}

// Forking is the plan for a chat that does not have the history yet that spec.fork names: it does nothing and says so.
// A chat and its source may come with the same manifest.
func Forking(f Facts, problem *conditions.ForkProblem) Plan {
	p := Plan{Status: *f.Chat.Status.DeepCopy()}
	p.Status.Phase = cmp.Or(p.Status.Phase, v1beta1.ChatWaiting)
	if left := ManifestPatience - f.Now.Sub(f.Chat.CreationTimestamp.Time); problem != nil && left > 0 {
		problem.MayPass = true
	}
	conditions.Chat(&p.Status, conditions.ChatFacts{Forking: true, Fork: f.Chat.Spec.Fork, ForkProblem: problem,
		Generation: f.Chat.Generation, Now: f.Now})
	return p
}
