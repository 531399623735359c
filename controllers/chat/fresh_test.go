// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
)

// view is a reader that knows classes, and messages that have yet to be dealt with, and counts how often it is asked
// for classes.
type view struct {
	client.Reader
	version string
	classes []v1alpha1.ChatClass
	said    []v1alpha1.ChatMessage
	asked   int
}

func (v *view) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch list := into.(type) {
	case *v1alpha1.ChatClassList:
		v.asked++
		list.ResourceVersion, list.Items = v.version, v.classes
	case *v1alpha1.ChatMessageList:
		list.Items = v.said
	}
	return nil
}

// freshReaderOf reads from that cache, and from that API server, and knows nothing yet.
func freshReaderOf(cache, live client.Reader) *freshReader {
	return &freshReader{cache: cache, live: live, shown: lru.New(9), specs: lru.New(9)}
}

// filledUntil are informers that have heard of all that was written until then.
type filledUntil struct {
	ctrlcache.Informers
	version string
}

func (f filledUntil) GetInformer(context.Context, client.Object, ...ctrlcache.InformerGetOption) (ctrlcache.Informer,
	error) {
	store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	store.Bookmark(f.version)
	return storing{store: store}, nil
}

type storing struct {
	toolscache.SharedIndexInformer
	store toolscache.Store
}

func (s storing) GetStore() toolscache.Store { return s.store }

func classAt(name, version string) v1alpha1.ChatClass {
	return v1alpha1.ChatClass{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

func chatAt(uid, version string, generation int64) *v1alpha1.Chat {
	return &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Name: uid, Namespace: "ns", UID: types.UID(uid),
		ResourceVersion: version, Generation: generation}}
}

func saidAt(uid, version string, generation int64) v1alpha1.ChatMessage {
	return v1alpha1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: uid, Namespace: "ns", UID: types.UID(uid),
		ResourceVersion: version, Generation: generation}}
}

// classesFor is how often the API server was asked for classes, and which of them the reader has told last.
func classesFor(t *testing.T, r *freshReader, chat *v1alpha1.Chat) (asked int, names string) {
	t.Helper()
	var classes v1alpha1.ChatClassList
	if err := r.list(t.Context(), &v1alpha1.ChatClass{}, &classes, chat); err != nil {
		t.Fatal(err)
	}
	for i := range classes.Items {
		names += classes.Items[i].Name
	}
	return r.live.(*view).asked, names
}

func TestTheServerIsAskedUntilTheCacheIsKnownToShowWhatAManifestBroughtAlong(t *testing.T) {
	a, b := classAt("a", "3"), classAt("b", "5")
	cache, live := &view{classes: []v1alpha1.ChatClass{a}}, &view{version: "20", classes: []v1alpha1.ChatClass{a}}
	r := freshReaderOf(cache, live)
	for _, c := range []struct {
		name  string
		first func()
		chat  *v1alpha1.Chat
		asked int
		names string
	}{
		{"a new chat", nil, chatAt("c", "10", 1), 1, "a"},
		{"the cache showed the same", nil, chatAt("c", "10", 1), 1, "a"},
		{"its status was written", nil, chatAt("c", "30", 1), 1, "a"},
		{"an older one", nil, chatAt("d", "9", 1), 1, "a"},
		{"one in another namespace", func() { live.version = "21" }, func() *v1alpha1.Chat {
			other := chatAt("o", "9", 1)
			other.Namespace = "other"
			return other
		}(), 2, "a"},
		{"its spec was written", func() { live.version = "40" }, chatAt("c", "31", 2), 3, "a"},
		{"and something was said to it", func() { cache.said = append(cache.said, saidAt("m", "41", 1)) },
			chatAt("c", "31", 2), 4, "a"},
		{"which the last list was too old for", func() { live.version = "42" }, chatAt("c", "31", 2), 5, "a"},
		{"and now is not", nil, chatAt("c", "31", 2), 5, "a"},
		{"the status of the message was written", func() { cache.said[0].ResourceVersion = "43" },
			chatAt("c", "31", 2), 5, "a"},
		{"the next brought a class along, which the cache does not show", func() {
			cache.said = append(cache.said, saidAt("n", "51", 1))
			live.version, live.classes = "52", []v1alpha1.ChatClass{a, b}
		}, chatAt("c", "31", 2), 6, "ab"},
		{"nor now", nil, chatAt("c", "31", 2), 7, "ab"},
		{"but now it does", func() { cache.classes = live.classes }, chatAt("c", "31", 2), 8, "ab"},
		{"which is known", nil, chatAt("c", "31", 2), 8, "ab"},
		{"it shows another version", func() {
			cache.said = append(cache.said, saidAt("p", "60", 1))
			live.version, cache.classes = "61", []v1alpha1.ChatClass{a, classAt("b", "4")}
		}, chatAt("c", "31", 2), 9, "ab"},
		{"and still", nil, chatAt("c", "31", 2), 10, "ab"},
	} {
		if c.first != nil {
			c.first()
		}
		if asked, names := classesFor(t, r, c.chat); asked != c.asked || names != c.names {
			t.Errorf("%s: the API server was asked %d times, and the classes are %q", c.name, asked, names)
		}
	}
}

func TestTheCacheShowsWhatWasWrittenBeforeItWasFilled(t *testing.T) {
	for version, asked := range map[string]int{"99": 0, "100": 0, "101": 1, "": 1} {
		r := freshReaderOf(&view{}, &view{version: "200"})
		r.informers = filledUntil{version: "100"}
		if got, _ := classesFor(t, r, chatAt("c", version, 1)); got != asked {
			t.Errorf("for a chat of %q the API server was asked %d times", version, got)
		}
	}
	r := freshReaderOf(&view{}, &view{})
	r.informers = filledUntil{}
	if got, _ := classesFor(t, r, chatAt("c", "1", 1)); got != 1 {
		t.Errorf("it was asked %d times beside a cache of which nothing is known", got)
	}
}
