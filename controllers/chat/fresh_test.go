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

// view is a reader that knows classes, configurations and messages of the namespace ns, and counts how often it is
// asked for one of the former two.
type view struct {
	client.Reader
	version string
	classes []v1alpha1.ChatClass
	configs []v1alpha1.ChatModelConfig
	said    []v1alpha1.ChatMessage
	asked   int
}

func (v *view) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	into.SetResourceVersion(v.version)
	inNamespace := (&client.ListOptions{}).ApplyOptions(opts).Namespace == "ns"
	switch list := into.(type) {
	case *v1alpha1.ChatMessageList:
		list.Items = v.said
	case *v1alpha1.ChatClassList:
		if v.asked++; inNamespace {
			list.Items = v.classes
		}
	case *v1alpha1.ChatModelConfigList:
		if v.asked++; inNamespace {
			list.Items = v.configs
		}
	}
	return nil
}

// freshReaderOf reads from that cache, and from that API server, and knows nothing yet.
func freshReaderOf(cache, live client.Reader) *freshReader {
	return &freshReader{cache: cache, live: live, shown: lru.New(9), specs: lru.New(9)}
}

// syncedTo are informers that have come as far as that resourceVersion.
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

// partsSyncedTo are informers of a kind, one for each namespace, that have come as far as these resourceVersions.
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

func classAt(name, version string) v1alpha1.ChatClass {
	return v1alpha1.ChatClass{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name),
		ResourceVersion: version}}
}

// classesAsOf are the names of the classes that the reader lists.
func classesAsOf(t *testing.T, r *freshReader, namespace, basis string) (names string) {
	t.Helper()
	var classes v1alpha1.ChatClassList
	if _, err := r.list(t.Context(), &v1alpha1.ChatClass{}, &classes, namespace, basis); err != nil {
		t.Fatal(err)
	}
	for i := range classes.Items {
		names += classes.Items[i].Name
	}
	return names
}

func TestTheServerIsAskedForWhatIsNewerThanTheLastListThatTheCacheShowed(t *testing.T) {
	both := []v1alpha1.ChatClass{classAt("a", "3")}
	for name, c := range map[string]struct {
		namespace, basis string
		asked            int
	}{
		"it is older":                     {"ns", "19", 1},
		"it is as old":                    {"ns", "20", 1},
		"it is newer":                     {"ns", "21", 2},
		"by more than a digit":            {"ns", "100", 2},
		"it is to be as it is now":        {"ns", "", 2},
		"it is older, in another":         {"other", "19", 2},
		"it is newer, in another, as now": {"other", "", 2},
	} {
		live := &view{version: "20", classes: both}
		r := freshReaderOf(&view{classes: both}, live)
		classesAsOf(t, r, "ns", "10")
		classesAsOf(t, r, c.namespace, c.basis)
		if live.asked != c.asked {
			t.Errorf("%s: the API server was asked %d times", name, live.asked)
		}
	}
}

func TestAListOfOneKindSaysNothingOfAnother(t *testing.T) {
	live := &view{version: "20"}
	r := freshReaderOf(&view{}, live)
	classesAsOf(t, r, "ns", "10")
	var configs v1alpha1.ChatModelConfigList
	if asOf, err := r.list(t.Context(), &v1alpha1.ChatModelConfig{}, &configs, "ns", "10"); err != nil ||
		live.asked != 2 || asOf != "20" {
		t.Errorf("the API server was asked %d times, as of %s: %v", live.asked, asOf, err)
	}
}

func TestAListThatTheCacheDoesNotShowIsAskedForAgain(t *testing.T) {
	a, b := classAt("a", "3"), classAt("b", "15")
	for name, cached := range map[string][]v1alpha1.ChatClass{
		"it lacks one":           {a},
		"it has one that went":   {a, b, classAt("c", "2")},
		"it has an older one":    {a, classAt("b", "14")},
		"it has another instead": {a, classAt("c", "15")},
	} {
		cache, live := &view{classes: cached}, &view{version: "20", classes: []v1alpha1.ChatClass{a, b}}
		r := freshReaderOf(cache, live)
		for range 2 {
			if names := classesAsOf(t, r, "ns", "10"); names != "ab" {
				t.Errorf("%s: it told of %q", name, names)
			}
		}
		cache.classes = live.classes
		classesAsOf(t, r, "ns", "10") // Now it is shown.
		if names := classesAsOf(t, r, "ns", "10"); live.asked != 3 || names != "ab" {
			t.Errorf("%s: the API server was asked %d times, and it told of %q", name, live.asked, names)
		}
	}
}

func TestTheNewestListCounts(t *testing.T) {
	live := &view{version: "20"}
	r := freshReaderOf(&view{}, live)
	classesAsOf(t, r, "ns", "")
	live.version = "18" // Of another worker, who asked before, and was answered later.
	classesAsOf(t, r, "ns", "")
	if classesAsOf(t, r, "ns", "19"); live.asked != 2 {
		t.Errorf("the API server was asked %d times", live.asked)
	}
}

func TestTheCacheShowsWhatWasWrittenBeforeItWasFilled(t *testing.T) {
	for _, c := range []struct {
		synced, basis string
		asked         int
	}{{"100", "99", 0}, {"100", "100", 0}, {"100", "101", 1}, {"100", "", 1}, {"", "1", 1}} {
		live := &view{version: "200"}
		r := freshReaderOf(&view{}, live)
		r.informers = syncedTo{version: c.synced}
		if classesAsOf(t, r, "ns", c.basis); live.asked != c.asked {
			t.Errorf("synced to %q, for what was written at %q, the API server was asked %d times", c.synced, c.basis,
				live.asked)
		}
	}
}

func TestInformersOfEachNamespaceShowWhatTheOldestShows(t *testing.T) {
	for _, c := range []struct {
		synced []string
		basis  string
		asked  int
	}{
		{[]string{"100", "90"}, "90", 0}, {[]string{"100", "90"}, "91", 1}, {[]string{"90", "100"}, "91", 1},
		{[]string{"100", ""}, "1", 1}, {nil, "1", 1},
	} {
		live := &view{version: "200"}
		r := freshReaderOf(&view{}, live)
		r.informers = partsSyncedTo{versions: c.synced}
		if classesAsOf(t, r, "ns", c.basis); live.asked != c.asked {
			t.Errorf("synced to %q, for what was written at %q, the API server was asked %d times", c.synced, c.basis,
				live.asked)
		}
	}
}

func TestWritesOfAStatusMakeNoSpecNewer(t *testing.T) {
	r := freshReaderOf(nil, nil)
	for _, c := range []struct {
		uid        types.UID
		version    string
		generation int64
		want       string
	}{{"a", "10", 1, "10"}, {"a", "11", 1, "10"}, {"a", "12", 2, "12"}, {"b", "13", 1, "13"}, {"a", "14", 2, "12"}} {
		o := &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{UID: c.uid, ResourceVersion: c.version, Generation: c.generation}}
		if got := r.specWritten(o); got != c.want {
			t.Errorf("the spec of %+v was written at %s", c, got)
		}
	}
}
