// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// view is a reader that knows the classes of the namespace ns, and counts how often it is asked for them.
type view struct {
	client.Reader
	version string
	classes []v1beta1.ChatClass
	asked   int
}

func (v *view) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	v.asked++
	into.SetResourceVersion(v.version)
	if list := into.(*v1beta1.ChatClassList); (&client.ListOptions{}).ApplyOptions(opts).Namespace == "ns" {
		list.Items = v.classes
	}
	return nil
}

// listerOf reads from that cache, and from that API server, and knows nothing yet.
func listerOf(cache, live client.Reader) *classLister {
	l := newClassLister(&Options{})
	l.cache, l.live = cache, live
	return &l
}

// syncedTo is informers that are synced to a resourceVersion.
type syncedTo struct {
	ctrlcache.Informers
	version string
}

func (f syncedTo) GetInformer(context.Context, client.Object, ...ctrlcache.InformerGetOption) (ctrlcache.Informer,
	error) {
	store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	store.Bookmark(f.version)
	return storing{store: store}, nil
}

// partsSyncedTo is informers of a kind, one for each namespace, that are synced to these resourceVersions.
type partsSyncedTo struct {
	ctrlcache.Informers
	versions []string
}

func (f partsSyncedTo) GetInformer(ctx context.Context, o client.Object, opts ...ctrlcache.InformerGetOption) (
	ctrlcache.Informer, error) {
	var parts parts
	for _, version := range f.versions {
		part, err := syncedTo{version: version}.GetInformer(ctx, o, opts...)
		if err != nil {
			return nil, err
		}
		parts.all = append(parts.all, part.(storing))
	}
	return parts, nil
}

type parts struct {
	ctrlcache.Informer
	all []toolscache.SharedInformer
}

func (p parts) Parts() []toolscache.SharedInformer { return p.all }

type storing struct {
	toolscache.SharedIndexInformer
	store toolscache.Store
}

func (s storing) GetStore() toolscache.Store { return s.store }

func classAt(name, version string) v1beta1.ChatClass {
	return v1beta1.ChatClass{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name),
		ResourceVersion: version}}
}

// namesAsNewAs are the names of the classes that are listed for a chat that was written at that resourceVersion.
func namesAsNewAs(t *testing.T, l *classLister, namespace, version string, messages ...v1beta1.ChatMessage) string {
	t.Helper()
	chat := at(version, chattest.Chat("c"+version))
	chat.Namespace = namespace
	cached, err := l.list(t.Context(), l.cache, namespace)
	if err != nil {
		t.Fatal(err)
	}
	s := &scope{facts: plan.Facts{Chat: chat}, unsettled: messages}
	classes, err := l.listAsNewAs(t.Context(), s, cached.Items)
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for i := range classes {
		names += classes[i].Name
	}
	return names
}

func TestFirstStepOfForkAsksForClasses(t *testing.T) {
	fork := chattest.Chat("f", func(c *v1beta1.Chat) {
		c.Spec.Fork, c.Status.History.Version = &v1beta1.ForkSource{Chat: "c", Message: "m"}, 7
	})
	s := &scope{facts: plan.Facts{Chat: fork}}
	check.Equal(t, "before it has replied", true, s.beginsFirstStep())
	fork.Status.Usage.InputTokens = 1
	check.Equal(t, "once it has", false, s.beginsFirstStep())
}

func TestCachedClassesServeChatsOlderThanLastList(t *testing.T) {
	both := []v1beta1.ChatClass{classAt("a", "3")}
	for name, c := range map[string]struct {
		namespace, version string
		messages           []v1beta1.ChatMessage
		asked              int
	}{
		"older":                     {"ns", "19", nil, 1},
		"as old":                    {"ns", "20", nil, 1},
		"newer":                     {"ns", "21", nil, 2},
		"newer by a digit":          {"ns", "100", nil, 2},
		"older, with newer message": {"ns", "19", []v1beta1.ChatMessage{*at("21", chattest.User("c", "m"))}, 2},
		"another namespace":         {"other", "19", nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			live := &view{version: "20", classes: both}
			l := listerOf(&view{classes: both}, live)
			namesAsNewAs(t, l, "ns", "10")
			namesAsNewAs(t, l, c.namespace, c.version, c.messages...)
			if live.asked != c.asked {
				t.Errorf("the API server was asked %d times, want %d", live.asked, c.asked)
			}
		})
	}
}

func TestClassListDifferingFromCacheIsNotReused(t *testing.T) {
	a, b := classAt("a", "3"), classAt("b", "15")
	for name, cached := range map[string][]v1beta1.ChatClass{
		"it lacks one":           {a},
		"it has one that went":   {a, b, classAt("c", "2")},
		"it has an older one":    {a, classAt("b", "14")},
		"it has another instead": {a, classAt("c", "15")},
	} {
		t.Run(name, func(t *testing.T) {
			cache, live := &view{classes: cached}, &view{version: "20", classes: []v1beta1.ChatClass{a, b}}
			l := listerOf(cache, live)
			for range 2 {
				if names := namesAsNewAs(t, l, "ns", "10"); names != "ab" {
					t.Errorf("listed %q", names)
				}
			}
			cache.classes = live.classes
			namesAsNewAs(t, l, "ns", "10") // Now the cache agrees.
			if names := namesAsNewAs(t, l, "ns", "10"); live.asked != 3 || names != "ab" {
				t.Errorf("the API server was asked %d times, and %q listed", live.asked, names)
			}
		})
	}
}

func TestOlderListReplacesNoNewerOne(t *testing.T) {
	live := &view{version: "20"}
	l := listerOf(&view{}, live)
	namesAsNewAs(t, l, "ns", "10")
	live.version = "18" // Of another worker, who asked before, and was answered later.
	namesAsNewAs(t, l, "ns", "21")
	if namesAsNewAs(t, l, "ns", "19"); live.asked != 2 {
		t.Errorf("the API server was asked %d times", live.asked)
	}
}

func TestSyncedInformerNeedsNoList(t *testing.T) {
	for _, c := range []struct {
		synced, version string
		asked           int
	}{{"100", "99", 0}, {"100", "100", 0}, {"100", "101", 1}, {"", "1", 1}} {
		live := &view{version: "200"}
		l := listerOf(&view{}, live)
		l.informers = syncedTo{version: c.synced}
		if namesAsNewAs(t, l, "ns", c.version); live.asked != c.asked {
			t.Errorf("synced to %q, for a chat of %q, the API server was asked %d times", c.synced, c.version, live.asked)
		}
	}
}

func TestOldestOfTheNamespacesInformersCounts(t *testing.T) {
	for _, c := range []struct {
		synced  []string
		version string
		asked   int
	}{
		{[]string{"100", "90"}, "90", 0}, {[]string{"100", "90"}, "91", 1}, {[]string{"90", "100"}, "91", 1},
		{[]string{"100", ""}, "1", 1}, {nil, "1", 1},
	} {
		live := &view{version: "200"}
		l := listerOf(&view{}, live)
		l.informers = partsSyncedTo{versions: c.synced}
		if namesAsNewAs(t, l, "ns", c.version); live.asked != c.asked {
			t.Errorf("synced to %q, for a chat of %q, the API server was asked %d times", c.synced, c.version, live.asked)
		}
	}
}

// arriving is a cache that shows the default class from its second list on.
type arriving struct {
	view
	class v1beta1.ChatClass
}

func (a *arriving) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	defer func() { a.classes = []v1beta1.ChatClass{a.class} }()
	return a.view.List(ctx, into, opts...)
}

func TestListFromBeforeTheCheckProvesNothing(t *testing.T) {
	cache := &arriving{class: classAt("everybody", "200")}
	l := listerOf(cache, &view{})
	l.informers = syncedTo{version: "201"} // It had not come so far when the classes were listed first.
	if names := namesAsNewAs(t, l, "ns", "201"); names != "everybody" {
		t.Errorf("listed %q", names)
	}
}

func TestStatusWriteKeepsRequiredListVersion(t *testing.T) {
	l := listerOf(nil, nil)
	for _, c := range []struct {
		uid           types.UID
		generation    int64
		version, want string
	}{{"a", 1, "10", "10"}, {"a", 1, "11", "10"}, {"b", 1, "13", "13"}, {"a", 2, "14", "14"}, {"a", 2, "15", "14"}} {
		o := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{UID: c.uid, ResourceVersion: c.version, Generation: c.generation}}
		if got := l.firstSeen(o); got != c.want {
			t.Errorf("%+v was first seen at %s", c, got)
		}
	}
}
