// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	fakesource "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// lister lists and watches what a source has.
type lister struct {
	*fakesource.FakeControllerSource
}

// IsWatchListSemanticsUnSupported says that the source cannot list by a watch.
func (lister) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.ListerWatcher.
func (l lister) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.FakeControllerSource.List(o)
}

// Watch implements cache.ListerWatcher.
func (l lister) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.FakeControllerSource.Watch(o)
}

// allNamespaces stands before values that are looked for in all namespaces.
const allNamespaces = "__all_namespaces"

// fieldIndexes are indexes as controller-runtime makes them.
func fieldIndexes(fields map[string]client.IndexerFunc) cache.Indexers {
	indexers := cache.Indexers{}
	for field, keys := range fields {
		indexers[indexName(field)] = func(o any) (values []string, err error) {
			object := o.(client.Object)
			for _, value := range keys(object) {
				values = append(values, object.GetNamespace()+"/"+value, allNamespaces+"/"+value)
			}
			return values, nil
		}
	}
	return indexers
}

var messageIndexes = map[string]client.IndexerFunc{UnsettledByChat: keysOf(unsettledByChat),
	MessagesByChat:   keysOf(messagesByChat),
	MessagesByParent: keysOf(FollowedBy), ReportsByChat: keysOf(reportsByChat)}

// pair is an informer as the manager has it, and one that keeps objects whole.
type pair struct {
	packed, plain cache.SharedIndexInformer
}

func newPair(t *testing.T, source *fakesource.FakeControllerSource) pair {
	t.Helper()
	make := Informers(nil)
	byNamespace := func() cache.Indexers { return cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc} }
	p := pair{make(lister{source}, &v1beta1.ChatMessage{}, 0, byNamespace()),
		cache.NewSharedIndexInformer(lister{source}, &v1beta1.ChatMessage{}, 0, byNamespace())}
	for _, informer := range []cache.SharedIndexInformer{p.packed, p.plain} {
		// The source gives both the same object.
		if err := informer.SetTransform(func(o any) (any, error) {
			return StripMessage(o.(runtime.Object).DeepCopyObject())
		}); err != nil {
			t.Fatal(err)
		}
		check.OK(t, informer.AddIndexers(fieldIndexes(messageIndexes)))
	}
	return p
}

func (p pair) start(t *testing.T) {
	t.Helper()
	start(t, p.packed, p.plain)
}

// start runs the informers until the test ends, and waits until they have synced. An informer runs only once.
func start(t *testing.T, informers ...cache.SharedIndexInformer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	for _, informer := range informers {
		running.Go(func() { informer.RunWithContext(ctx) })
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			t.Fatal("an informer does not sync")
		}
	}
}

// compare waits until both hold what the source does, and compares all that they answer.
func (p pair) compare(t *testing.T, want map[string]string) {
	t.Helper()
	for _, informer := range []cache.SharedIndexInformer{p.packed, p.plain} {
		waiting.Until(t, time.Minute, "an informer has what there is", func() bool {
			return cmp.Equal(versions(informer.GetStore().List()), want)
		})
	}
	packed, plain := p.packed.GetIndexer(), p.plain.GetIndexer()
	same(t, "all", packed.List(), plain.List())
	for key := range want {
		a, _, _ := packed.GetByKey(key)
		b, _, _ := plain.GetByKey(key)
		same(t, key, []any{a}, []any{b})
	}
	if _, ok, err := packed.GetByKey("a/none"); ok || err != nil {
		t.Error("there is an object that is not there", err)
	}
	for field := range messageIndexes {
		name, namespaced := indexName(field), field == MessagesByChat || field == MessagesByParent
		for _, value := range append(plain.ListIndexFuncValues(name), "a/none", allNamespaces+"/none") {
			if namespaced && strings.HasPrefix(value, allNamespaces) {
				continue
			}
			a, err := packed.ByIndex(name, value)
			check.OK(t, err)
			b, _ := plain.ByIndex(name, value)
			same(t, name+" "+value, a, b)
		}
	}
}

// same compares objects, whatever their order.
func same(t *testing.T, what string, got, want []any) {
	t.Helper()
	for _, objects := range [][]any{got, want} {
		slices.SortFunc(objects, func(a, b any) int { return strings.Compare(keyOf(a), keyOf(b)) })
	}
	if diff := cmp.Diff(want, got); diff != "" && len(got)+len(want) > 0 {
		t.Fatalf("%s: %s", what, diff)
	}
}

func keyOf(o any) string {
	key, _ := cache.MetaNamespaceKeyFunc(o)
	return key
}

func versions(objects []any) map[string]string {
	all := map[string]string{}
	for _, o := range objects {
		all[keyOf(o)] = o.(client.Object).GetResourceVersion()
	}
	return all
}

// follower builds from events what a store holds.
type follower struct {
	t     *testing.T
	mu    sync.Mutex
	known map[string]*v1beta1.ChatMessage
	// initial counts objects of the first list.
	initial int
}

// OnAdd implements cache.ResourceEventHandler.
func (f *follower) OnAdd(o any, initial bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known[keyOf(o)] != nil {
		f.t.Errorf("%s is added again", keyOf(o))
	}
	if initial {
		f.initial++
	}
	f.keep(o)
}

// OnUpdate implements cache.ResourceEventHandler.
func (f *follower) OnUpdate(before, after any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := cmp.Diff(f.known[keyOf(after)], before.(*v1beta1.ChatMessage)); diff != "" {
		f.t.Errorf("%s was another one before: %s", keyOf(after), diff)
	}
	f.keep(after)
}

// OnDelete implements cache.ResourceEventHandler.
func (f *follower) OnDelete(o any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	if f.known[keyOf(o)] == nil {
		f.t.Errorf("%s goes, which has never come", keyOf(o))
	}
	delete(f.known, keyOf(o))
}

func (f *follower) keep(o any) {
	if f.known == nil {
		f.known = map[string]*v1beta1.ChatMessage{}
	}
	f.known[keyOf(o)] = o.(*v1beta1.ChatMessage)
}

func (f *follower) compare(t *testing.T, want map[string]string) {
	t.Helper()
	waiting.Until(t, time.Minute, "a handler has heard of everything", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		heard := map[string]string{}
		for key, m := range f.known {
			heard[key] = m.ResourceVersion
		}
		return cmp.Equal(heard, want)
	})
}

// drawMessage draws a message of a few chats with few names, so that they meet. Only a message of the same chat is
// before it.
func drawMessage(random *rand.Rand) *v1beta1.ChatMessage {
	chat := fmt.Sprintf("c%d", random.IntN(4))
	name := func() string { return fmt.Sprintf("%s-m%d", chat, random.IntN(10)) }
	m := &v1beta1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: string("ab"[random.IntN(2)]), Name: name(), Generation: random.Int64N(3)},
		Spec: v1beta1.ChatMessageSpec{ChatRef: v1beta1.ChatReference{Name: chat}, Role: v1beta1.RoleUser,
			Content: name()}}
	if random.IntN(2) == 0 {
		m.Spec.Parent, m.Spec.Role, m.Spec.Content = name(), v1beta1.RoleAssistant, ""
		m.Spec.Generation = &v1beta1.MessageGeneration{Outcome: []v1beta1.GenerationOutcome{v1beta1.OutcomeCompleted,
			v1beta1.OutcomeFailed, v1beta1.OutcomeInterrupted}[random.IntN(3)]}
		return m
	}
	if random.IntN(2) == 0 {
		m.Status = v1beta1.ChatMessageStatus{Parent: name(), ObservedGeneration: m.Generation,
			Conditions: []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue}}}
	}
	return m
}

func TestPackedMessagesAnswerLikeWholeOnes(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, seed))
			source := fakesource.NewFakeControllerSource()
			there := map[string]*v1beta1.ChatMessage{}
			change := func() {
				m := drawMessage(random)
				switch old := there[keyOf(m)]; {
				case old == nil:
					source.Add(m.DeepCopy())
				case random.IntN(3) == 0:
					source.Delete(old.DeepCopy())
					delete(there, keyOf(m))
					return
				default:
					source.Modify(m.DeepCopy())
				}
				there[keyOf(m)] = m
			}
			for range 30 {
				change()
			}
			p := newPair(t, source)
			early, late := &follower{t: t}, &follower{t: t}
			if _, err := p.packed.AddEventHandler(early); err != nil {
				t.Fatal(err)
			}
			p.start(t)
			for round := range 20 {
				for range random.IntN(30) {
					change()
				}
				if round == 7 || round == 13 {
					source.ResetWatch() // What changed since is only seen by listing again.
					for range random.IntN(30) {
						change()
					}
				}
				want := versionsOf(source, t)
				p.compare(t, want)
				if round == 10 {
					handle, err := p.packed.AddEventHandler(late)
					check.OK(t, err)
					waiting.Until(t, time.Minute, "a late handler has heard of what there was", handle.HasSynced)
					if late.initial != len(want) {
						t.Fatalf("a late handler hears of %d of %d", late.initial, len(want))
					}
				}
				early.compare(t, want)
			}
			late.compare(t, versionsOf(source, t))
		})
	}
}

// versionsOf are the resourceVersions of what the source has.
func versionsOf(source *fakesource.FakeControllerSource, t *testing.T) map[string]string {
	t.Helper()
	list, err := source.List(metav1.ListOptions{})
	check.OK(t, err)
	objects, err := meta.ExtractList(list)
	check.OK(t, err)
	all := make([]any, len(objects))
	for i := range objects {
		all[i] = objects[i]
	}
	return versions(all)
}

func TestIndexesAreAddedBeforeThereAreObjects(t *testing.T) {
	source := fakesource.NewFakeControllerSource()
	source.Add(&v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "m"}})
	p := newPair(t, source)
	p.start(t)
	if err := p.packed.AddIndexers(cache.Indexers{"late": cache.MetaNamespaceIndexFunc}); err == nil {
		t.Error("an index is added that objects have no values of")
	}
}

func TestMessageIndexRejectsLookupAcrossNamespaces(t *testing.T) {
	p := newPair(t, fakesource.NewFakeControllerSource())
	p.start(t)
	for _, field := range []string{MessagesByChat, MessagesByParent} {
		if found, err := p.packed.GetIndexer().ByIndex(indexName(field), allNamespaces+"/c"); err == nil {
			t.Errorf("%s finds %v in all namespaces, of which it keeps nothing", field, found)
		}
	}
}

func TestASlowHandlerHoldsLaterChangesBack(t *testing.T) {
	source := fakesource.NewFakeControllerSource()
	p := newPair(t, source)
	p.start(t)
	hears, goOn := make(chan struct{}), make(chan struct{})
	if _, err := p.packed.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		hears <- struct{}{}
		<-goOn
	}}); err != nil {
		t.Fatal(err)
	}
	named := func(name string) *v1beta1.ChatMessage {
		return &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	}
	source.Add(named("first"))
	<-hears
	source.Add(named("second"))
	waiting.Until(t, time.Minute, "an informer with a queue goes on", func() bool {
		return len(p.plain.GetStore().ListKeys()) == 2
	})
	check.Equal(t, "keys in the store while the handler works", []string{"a/first"}, p.packed.GetStore().ListKeys())
	goOn <- struct{}{}
	<-hears
	if keys := p.packed.GetStore().ListKeys(); len(keys) != 2 {
		t.Errorf("the handler hears of a change before the store has it: %v", keys)
	}
	close(goOn)
}
