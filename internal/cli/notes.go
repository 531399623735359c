// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/kube/apiclient"
)

// notesPatience is how long a conversation is shown later for the sake of its notes: 2 s. Who may not list messages
// sees it without them.
const notesPatience = 2 * time.Second

// watchedNotes are the messages of a chat that are for people alone, as an informer sees them. It implements
// follow.Notes.
type watchedNotes struct {
	client *apiclient.Client
	store  cache.Store
}

// watchNotes follows the notes of a chat until ctx is done.
func (a apiServer) watchNotes(ctx context.Context, namespace, chat string, changed func()) (*watchedNotes, error) {
	selector := fmt.Sprintf("spec.chatRef.name=%s,spec.visibility=%s", chat, v1alpha1.VisibleToPeople)
	informer := cache.NewSharedIndexInformer(a.client.Messages(namespace).ListerWatcher(selector), &v1alpha1.ChatMessage{},
		0, cache.Indexers{})
	if _, err := informer.AddEventHandler(calling(changed)); err != nil {
		return nil, fmt.Errorf("watching the notes of chat %s: %w", chat, err)
	}
	go informer.RunWithContext(ctx)
	patient, cancel := context.WithTimeout(ctx, notesPatience)
	defer cancel()
	cache.WaitFor(patient, "", informer.HasSyncedChecker())
	return &watchedNotes{client: a.client, store: informer.GetStore()}, ctx.Err()
}

// Of implements follow.Notes.
func (w *watchedNotes) Of(chat *v1alpha1.Chat) (refs []follow.NoteRef) {
	for _, obj := range w.store.List() {
		if msg, ok := obj.(*v1alpha1.ChatMessage); ok {
			if note, ok := follow.NoteOf(chat, msg); ok {
				refs = append(refs, note)
			}
		}
	}
	return refs
}

// Read implements follow.Notes.
func (w *watchedNotes) Read(ctx context.Context, chat *v1alpha1.Chat, note follow.NoteRef) (*v1alpha1.ChatMessage,
	error) {
	msg, err := w.client.Messages(chat.Namespace).Get(ctx, note.Name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s: %w", note.Name, follow.ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("reading note %s: %w", note.Name, err)
	}
	return msg, nil
}

// noted shows a note. A stream that was resumed tells all of them again.
func (p *printer) noted(n *stream.Note) {
	before, changed := p.chat.Notes[n.Message.UID]
	if changed && n.Generation <= before.Generation || n.Index < p.notesFrom {
		return
	}
	of := ""
	if by := cmp.Or(n.Message.EditedBy, n.Message.CreatedBy); by != "" {
		of = " of " + by
	}
	if changed {
		of += ", changed"
	}
	p.heading(n.Message.Name)
	p.endLine()
	p.out.line("[note%s:]", of)
	p.quote("  ", n.Message.Content+textOf(&stream.MessageCommitted{Message: n.Message}))
}
