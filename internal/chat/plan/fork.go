// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/chat/machine"
	"parley.dev/parley/internal/text/content"
)

// Fork is the history that a chat continues from another one.
type Fork struct {
	// Messages are the copies, oldest first, without UIDs.
	Messages []*v1beta1.ChatMessage
	chat     *v1beta1.Chat
	source   *v1beta1.ChatStatus
	// tail are the commits behind the newest generated message.
	tail    []v1beta1.CommittedMessage
	version int64
	// names of the copies by those of the originals.
	names map[string]string
}

// NotInHistoryError means that the history does not have the message that spec.fork names.
type NotInHistoryError struct{}

func (NotInHistoryError) Error() string { return "the message is not part of the history" }

// EditedError means that a message of the history was edited, and that its chat has yet to continue from there.
type EditedError struct{ Message string }

func (e *EditedError) Error() string { return "message " + e.Message + " was edited" }

// ForkOf copies the part of a history that spec.fork of the chat names. The messages are all those of the source, whose
// statuses it completes. Errors: NotInHistoryError, *EditedError.
func ForkOf(chat, source *v1beta1.Chat, messages []v1beta1.ChatMessage) (*Fork, error) {
	whole := WholeOf(source, messages)
	end := 1 + slices.IndexFunc(whole.Chain, func(n history.Node) bool { return n.Name == chat.Spec.Fork.Message })
	if end == 0 {
		return nil, NotInHistoryError{}
	}
	chain := whole.Chain[:end]
	f := &Fork{chat: chat, source: &source.Status, tail: history.Tail(chain), names: map[string]string{}}
	for i, m := range whole.Messages[:end] {
		if commit := chain[i].Commit; commit != nil && commit.ContentHash != "" && commit.ContentHash != content.Of(m) {
			return nil, &EditedError{m.Name}
		}
		f.names[m.Name] = copyName(chat, m, i)
		f.version = max(f.version, chain[i].Version)
	}
	f.rename(f.tail)
	for _, m := range whole.Messages[:end] {
		f.Messages = append(f.Messages, f.copyOf(m))
	}
	return f, nil
}

// copyName is the name of the copy of a message. That of a generated one follows from its fence, as for all of them.
func copyName(chat *v1beta1.Chat, m *v1beta1.ChatMessage, index int) string {
	if m.Spec.Generation != nil {
		return attempts.Answered(m).ResultName(chat.Name)
	}
	return fmt.Sprintf("%s%d", copyPrefix(chat), index)
}

func copyPrefix(chat *v1beta1.Chat) string { return chat.Name + "-from-" }

// IsUnfinishedCopy reports whether a message is a copy for a fork that does not have its history yet. The fork makes it
// again if it is missing.
func IsUnfinishedCopy(chat *v1beta1.Chat, m *v1beta1.ChatMessage) bool {
	return chat.IsForking() && m.Annotations[v1beta1.AnnotationRestoredFrom] != "" &&
		strings.HasPrefix(m.Name, copyPrefix(chat))
}

// copyOf is the copy of a message, with the annotations of Parley. Labels are for selectors, such as those of GitOps
// tools that delete what they do not know.
func (f *Fork) copyOf(m *v1beta1.ChatMessage) *v1beta1.ChatMessage {
	annotations := map[string]string{v1beta1.AnnotationRestoredFrom: string(m.UID)}
	for key, value := range m.Annotations {
		if strings.HasPrefix(key, v1beta1.GroupVersion.Group+"/") && key != v1beta1.AnnotationRestoredFrom {
			annotations[key] = value
		}
	}
	c := &v1beta1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.chat.Namespace, Name: f.names[m.Name], Generation: 1, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f.chat, v1beta1.GroupVersion.WithKind("Chat"))},
		},
		Spec: *m.Spec.DeepCopy(), Status: *m.Status.DeepCopy(),
	}
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
			c.PreviousTurn = c.PreviousTurn.DeepCopy() // It may be the record of the source.
			c.PreviousTurn.Message = f.names[c.PreviousTurn.Message]
		}
	}
}

// Link enters the UIDs of the copies of people's and clients' messages, by name, where their commits are recorded. The
// generated messages can be created after it.
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

// whole is the copied history, with the status of each message that follows from its commit.
func (f *Fork) whole() Whole {
	chat, messages := f.chat.DeepCopy(), make([]v1beta1.ChatMessage, 0, len(f.Messages))
	for _, m := range f.Messages {
		messages = append(messages, *m)
	}
	chat.Status.History.Head, chat.Status.History.Length = f.Messages[len(f.Messages)-1].Name, int64(len(f.Messages))
	chat.Status.Internal.Tail = f.tail
	return WholeOf(chat, messages)
}

// Settled are the copies of people's and clients' messages, with their statuses, but for those of the newest turn: they
// depend on the chat's status. It is called after Link.
func (f *Fork) Settled(now time.Time) (settled []*v1beta1.ChatMessage) {
	whole := f.whole()
	newest := len(whole.Messages)
	for newest > 0 && whole.Messages[newest-1].Spec.Role != v1beta1.RoleUser {
		newest--
	}
	for _, m := range whole.Messages[:max(0, newest-1)] {
		if m.Spec.Generation != nil || len(m.Status.Conditions) == 0 {
			continue
		}
		m.Status.ObservedGeneration = m.Generation
		for i := range m.Status.Conditions {
			c := &m.Status.Conditions[i]
			c.ObservedGeneration = m.Generation
			if c.LastTransitionTime.IsZero() {
				c.LastTransitionTime = metav1.NewTime(now)
			}
		}
		settled = append(settled, m)
	}
	return settled
}

// rest describes the copied history. Calls without a result are cancelled: the source may have run them meanwhile.
func (f *Fork) rest() (*Truncated, error) {
	whole := f.whole()
	if whole.Missing != int64(len(f.Messages)) {
		return nil, fmt.Errorf("the copied history ends at %d of %d messages", whole.Missing, len(f.Messages))
	}
	t := whole.Rest()
	in := &t.Turn.Internal
	if in.ResumedVersion > f.version { // It was resumed later.
		in.ResumedVersion = 0
	}
	if t.Turn.TurnStatus != nil && in.PendingCalls > 0 {
		t.Unanswered, t.Turn.Result = false, v1beta1.TurnInterrupted
		cancelPendingCalls(t.Turn.TurnStatus, in, v1beta1.CallsEdited)
	}
	return t, nil
}

// Forked is the plan for a chat whose history has been copied: it has that from now on.
func Forked(f Facts, fork *Fork) (Plan, error) {
	var err error
	if f.Truncated, err = fork.rest(); err != nil {
		return Plan{}, err
	}
	p := &pass{facts: f, chat: f.Chat, plan: Plan{Status: *f.Chat.Status.DeepCopy()}}
	if err := p.fire(machine.Fork, subject{fork: fork}); err != nil {
		return Plan{}, err
	}
	conditions.Chat(p.status(), conditions.ChatFacts{Generation: f.Chat.Generation, Now: f.Now})
	p.status().IdleSince, p.status().ExpiresAt = nil, nil // The next pass decides whether it rests with its history.
	return p.plan, nil
}

// takeHistory begins with the copied history. Its version is as high as that of the newest copy. A context that the
// source has begun behind it is not that of the fork.
func takeHistory(p *pass, from *Fork) {
	st, t := p.status(), p.facts.Truncated
	st.History.Version = from.version
	if from.source.TitleSource != v1beta1.TitleFromSpec {
		st.Title, st.TitleSource = from.source.Title, from.source.TitleSource
	}
	for _, b := range from.source.Internal.ContextBoundaries {
		if b.Start < t.Length || from.source.History.Length == t.Length {
			st.Internal.ContextBoundaries = append(st.Internal.ContextBoundaries, b)
		}
	}
	continueFrom(p, t)
	backToContext(p)
}

// Forking is the plan for a chat that does not have the history yet that spec.fork names: it does nothing and says so,
// until its retention deletes it. A chat and its source may come with the same manifest. The chat is archived as it
// stands: it is in no state of the machine.
func Forking(f Facts, problem *conditions.ForkProblem) Plan {
	p := &pass{facts: f, chat: f.Chat, plan: Plan{Status: *f.Chat.Status.DeepCopy()}}
	st := p.status()
	st.Phase, st.Archived = cmp.Or(st.Phase, v1beta1.ChatWaiting), f.Chat.Spec.Archived
	if problem != nil && f.Now.Sub(f.Chat.CreationTimestamp.Time) < ManifestPatience {
		problem.MayPass = true
	}
	conditions.Chat(st, conditions.ChatFacts{Forking: true, Fork: f.Chat.Spec.Fork, ForkProblem: problem,
		Generation: f.Chat.Generation, Now: f.Now})
	settleForkRetention(p, problem)
	noticeWait(p, problem != nil && problem.MayPass)
	return p.plan
}
