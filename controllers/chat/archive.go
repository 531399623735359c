// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/text/printable"
)

const (
	// archivesAtOnce is how many chats are archived at the same time, so that a slow store leaves workers to other chats.
	archivesAtOnce = 2
	// archiveTimeout bounds the time to archive one chat.
	archiveTimeout = 10 * time.Minute
	// archiveBusy is when to look again at a chat that waits for others to be archived.
	archiveBusy = 10 * time.Second
	// archiveRetry is the pause after a failure. It grows by as much with each further one, up to ten times.
	archiveRetry = time.Minute
)

// archiver writes chats to object storage before their retention deletes them.
type archiver struct {
	store    *archive.Store // nil: there is none.
	live     client.Reader
	metrics  *telemetry.Manager
	now      func() time.Time
	running  limit.Limiter
	failures *archiveFailures
	begun    *begunArchives
}

// begin reserves a place for the chat until end is called, or returns when to look at the chat again.
func (a *archiver) begin(chat *v1beta1.Chat) (end func(), again time.Duration) {
	if left := a.failures.left(chat, a.now()); left > 0 {
		return nil, left
	}
	if !a.running.TryAcquire(1) {
		return nil, archiveBusy
	}
	return func() { a.running.Release(1) }, 0
}

// archive writes the chat, as it is in the API server, and all below it. It returns when to look at the chat again; 0:
// the store has all that will be deleted with it.
func (a *archiver) archive(ctx context.Context, chat *v1beta1.Chat) (again time.Duration, err error) {
	bounded, cancel := context.WithTimeout(ctx, archiveTimeout)
	defer cancel()
	written := sha256.New()
	if err = a.write(bounded, chat, written); err == nil {
		a.failures.forget(client.ObjectKeyFromObject(chat))
		a.metrics.Archived(telemetry.ArchiveSucceeded)
		return a.compare(bounded, chat, written)
	}
	source, ok := errors.AsType[sourceError](err)
	if ok && bounded.Err() == nil && !apierrors.IsResourceExpired(err) || ctx.Err() != nil {
		return 0, cmp.Or(source.error, err) // The API server is asked again, or the manager ends.
	}
	a.metrics.Archived(telemetry.ArchiveFailed)
	log.FromContext(ctx).Error(err, "The chat is kept because it cannot be archived")
	a.failures.put(chat, err, a.now())
	return time.Nanosecond, nil // The status reports it.
}

// sourceError is an error of the API server, and not of the store.
type sourceError struct{ error }

var errNoStore = errors.New("the manager has no object storage: start it with --archive-url")

func (a *archiver) write(ctx context.Context, chat *v1beta1.Chat, written hash.Hash) error {
	if a.store == nil {
		return errNoStore
	}
	entry, err := a.store.Write(ctx, chat, func(yield func(archive.Object, error) bool) {
		for o, err := range a.family(ctx, chat) {
			if err != nil {
				yield(nil, sourceError{err})
				return
			}
			note(written, o)
			if !yield(o, nil) {
				return
			}
		}
	})
	a.begun.put(client.ObjectKeyFromObject(chat), begunArchive{uid: chat.UID, entry: entry, complete: err == nil})
	return err
}

// compare reads the family again. What was created or changed while it was written is not in the archive.
func (a *archiver) compare(ctx context.Context, chat *v1beta1.Chat, written hash.Hash) (time.Duration, error) {
	now := sha256.New()
	for o, err := range a.family(ctx, chat) {
		if err != nil {
			return 0, err
		}
		note(now, o)
	}
	if [sha256.Size]byte(written.Sum(nil)) != [sha256.Size]byte(now.Sum(nil)) {
		a.discard(ctx, chat)
		return lookAtRest, nil
	}
	return 0, nil
}

// note adds the version of an object to a hash.
func note(to io.Writer, o archive.Object) {
	_, _ = fmt.Fprintln(to, o.GetUID(), o.GetResourceVersion()) // A hash accepts everything.
}

// family are the chat and all below it, with their messages and approvals, as the API server has them.
func (a *archiver) family(ctx context.Context, chat *v1beta1.Chat) iter.Seq2[archive.Object, error] {
	return func(yield func(archive.Object, error) bool) {
		top := &v1beta1.Chat{}
		if err := a.live.Get(ctx, client.ObjectKeyFromObject(chat), top); err != nil {
			yield(nil, fmt.Errorf("reading chat %s: %w", chat.Name, err))
			return
		}
		below, err := descendants(ctx, a.live, top)
		if err != nil {
			yield(nil, err)
			return
		}
		members := append([]*v1beta1.Chat{top}, below...)
		for _, member := range members {
			member.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Chat"))
			if !yield(member, nil) {
				return
			}
		}
		for _, member := range members {
			if !a.messages(ctx, member, yield) || !a.approvals(ctx, member, yield) {
				return
			}
		}
		if err := a.stillThere(ctx, top); err != nil {
			yield(nil, err)
		}
	}
}

// stillThere fails if the chat was deleted. Its messages go after it: what was listed may not be all, and must not
// replace what another manager has archived.
func (a *archiver) stillThere(ctx context.Context, chat *v1beta1.Chat) error {
	now := &v1beta1.Chat{}
	err := a.live.Get(ctx, client.ObjectKeyFromObject(chat), now)
	if err == nil && (now.UID != chat.UID || !now.DeletionTimestamp.IsZero()) {
		err = apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("chats").GroupResource(), chat.Name)
	}
	if err != nil {
		return fmt.Errorf("reading chat %s again: %w", chat.Name, err)
	}
	return nil
}

// messages yields the messages of a chat. It reports whether more is wanted.
func (a *archiver) messages(ctx context.Context, chat *v1beta1.Chat, yield func(archive.Object, error) bool) bool {
	for next, more := "", true; more; more = next != "" {
		var page v1beta1.ChatMessageList
		if err := a.list(ctx, &page, chat, next); err != nil {
			return yield(nil, err)
		}
		for i := range page.Items {
			page.Items[i].SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ChatMessage"))
			if !yield(&page.Items[i], nil) {
				return false
			}
		}
		next = page.Continue
	}
	return true
}

// approvals does so with the ToolApprovals.
func (a *archiver) approvals(ctx context.Context, chat *v1beta1.Chat, yield func(archive.Object, error) bool) bool {
	for next, more := "", true; more; more = next != "" {
		var page v1beta1.ToolApprovalList
		if err := a.list(ctx, &page, chat, next); err != nil {
			return yield(nil, err)
		}
		for i := range page.Items {
			page.Items[i].SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ToolApproval"))
			// An answer to a server may be a credential, and readers of archives need no right to approvals.
			page.Items[i].Spec.Content = ""
			if !yield(&page.Items[i], nil) {
				return false
			}
		}
		next = page.Continue
	}
	return true
}

func (a *archiver) list(ctx context.Context, page client.ObjectList, chat *v1beta1.Chat, next string) error {
	if err := a.live.List(ctx, page, client.InNamespace(chat.Namespace), client.Limit(messagesAtOnce),
		client.MatchingFields{index.MessagesByChat: chat.Name}, client.Continue(next)); err != nil {
		return fmt.Errorf("listing what belongs to chat %s: %w", chat.Name, err)
	}
	return nil
}

// archiveFailures remembers why chats could not be archived, and when to try again.
type archiveFailures struct {
	mu     sync.Mutex
	byChat map[types.NamespacedName]archiveFailure
}

type archiveFailure struct {
	plan.ArchiveFailure

	uid   types.UID
	tries int
	again time.Time
}

func (f *archiveFailures) of(chat *v1beta1.Chat) archiveFailure {
	f.mu.Lock()
	defer f.mu.Unlock()
	if failure := f.byChat[client.ObjectKeyFromObject(chat)]; failure.uid == chat.UID {
		return failure
	}
	return archiveFailure{}
}

// left is how long it is until the chat may be archived again.
func (f *archiveFailures) left(chat *v1beta1.Chat, now time.Time) time.Duration {
	return f.of(chat).again.Sub(now)
}

func (f *archiveFailures) put(chat *v1beta1.Chat, err error, now time.Time) {
	tries := f.of(chat).tries + 1
	why := plan.ArchiveFailure{Reason: v1beta1.ReasonArchiveWriteFailed, Message: printable.Line(archive.Reason(err))}
	if errors.Is(err, errNoStore) {
		why.Reason = v1beta1.ReasonArchiveNotConfigured
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byChat == nil {
		f.byChat = map[types.NamespacedName]archiveFailure{}
	}
	f.byChat[client.ObjectKeyFromObject(chat)] = archiveFailure{ArchiveFailure: why, uid: chat.UID, tries: tries,
		again: now.Add(archiveRetry * time.Duration(min(tries, 10)))}
}

func (f *archiveFailures) forget(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byChat, key)
}

// readArchive finds out why the chat could not be archived, if it could not, and whether something was written.
func (m *memory) readArchive(_ context.Context, s *scope) error {
	s.facts.ArchiveFailed = m.archives.of(s.facts.Chat).ArchiveFailure
	s.facts.ArchiveBegun = m.begun.has(s.facts.Chat)
	return nil
}
