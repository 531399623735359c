// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/follow"
)

// NoteSelector is the field selector of the messages that Config.Notes lists and watches.
const NoteSelector = "spec.visibility=" + string(v1alpha1.VisibleToPeople)

// notesByChat is the index of the notes of a chat.
const notesByChat = "chat"

// notes knows which messages for people alone there are, without what they say. It implements follow.Notes.
type notes struct {
	informer cache.SharedIndexInformer
	added    cache.ResourceEventHandlerRegistration
	messages *messages
}

// newNotes knows the notes that the source lists. changed is told of which chat, by its key, they may have changed.
func newNotes(source cache.ListerWatcher, messages *messages, changed func(chat string)) (*notes, error) {
	n := &notes{messages: messages, informer: cache.NewSharedIndexInformer(source, &v1alpha1.ChatMessage{}, 0,
		cache.Indexers{notesByChat: func(obj any) ([]string, error) { return chatsOfNote(obj), nil }})}
	if err := n.informer.SetTransform(withoutContent); err != nil {
		return nil, fmt.Errorf("preparing the cache of notes: %w", err)
	}
	wake := func(obj any) {
		if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = missed.Obj
		}
		for _, chat := range chatsOfNote(obj) {
			changed(chat)
		}
	}
	var err error
	n.added, err = n.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: wake, UpdateFunc: func(_, after any) { wake(after) }, DeleteFunc: wake,
	})
	if err != nil {
		return nil, fmt.Errorf("watching the cache of notes: %w", err)
	}
	return n, nil
}

func chatsOfNote(obj any) []string {
	if note, ok := obj.(*v1alpha1.ChatMessage); ok {
		return []string{note.Namespace + "/" + note.Spec.ChatRef.Name}
	}
	return nil
}

// withoutContent keeps of a note which it is and where it stands.
func withoutContent(obj any) (any, error) {
	note, ok := obj.(*v1alpha1.ChatMessage)
	if !ok {
		return obj, nil
	}
	return &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: note.Namespace, Name: note.Name, UID: note.UID,
			Generation: note.Generation, ResourceVersion: note.ResourceVersion, CreationTimestamp: note.CreationTimestamp,
			DeletionTimestamp: note.DeletionTimestamp},
		Spec: v1alpha1.ChatMessageSpec{ChatRef: note.Spec.ChatRef, Visibility: note.Spec.Visibility},
		Status: v1alpha1.ChatMessageStatus{State: note.Status.State, ChatUID: note.Status.ChatUID,
			Index: note.Status.Index},
	}, nil
}

// Of implements follow.Notes.
func (n *notes) Of(chat *v1alpha1.Chat) []follow.NoteRef {
	found, err := n.informer.GetIndexer().ByIndex(notesByChat, chat.Namespace+"/"+chat.Name)
	if err != nil {
		return nil // the index exists
	}
	var refs []follow.NoteRef
	for _, obj := range found {
		if msg, ok := obj.(*v1alpha1.ChatMessage); ok {
			if note, ok := follow.NoteOf(chat, msg); ok {
				refs = append(refs, note)
			}
		}
	}
	return refs
}

// Read implements follow.Notes. All who follow the chat at the same time cost one fetch.
func (n *notes) Read(ctx context.Context, chat *v1alpha1.Chat, note follow.NoteRef) (*v1alpha1.ChatMessage, error) {
	// A fetch that began for an earlier generation may bring that.
	key := fmt.Sprintf("note/%s/%s@%d", note.UID, note.Name, note.Generation)
	result := n.messages.fetching.DoChan(key, func() (any, error) {
		fetching, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		return n.messages.read(fetching, chat.Namespace, note.Name)
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*v1alpha1.ChatMessage), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
