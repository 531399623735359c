// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeapi is an API server in memory for tests of one reconcile: it has the manager's indexes, remembers the
// calls that are made, and answers those with an error that the test names.
package fakeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"
	pools "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// Server is the API server.
type Server struct {
	// Client is for what is tested.
	Client client.Client
	// Live is for what is tested, too: it reads past the cache.
	Live client.Reader
	// Direct is for the test itself: it neither counts nor fails.
	Direct client.WithWatch
	// Fail says how a call is answered; nil, or no error: as an API server does.
	Fail func(call string) error

	mu    sync.Mutex
	calls []string
	// created counts the objects by kind and name, as each has a UID of its own.
	created map[string]int
}

// converters know the fields that server-side apply merges. The fake client makes its own for each server, unless it is
// given some.
var converters = sync.OnceValue(func() []managedfields.TypeConverter {
	return []managedfields.TypeConverter{applyconfigurations.NewTypeConverter(clientgoscheme.Scheme),
		managedfields.NewDeducedTypeConverter()}
})

// New returns a server with the objects. Their statuses are there, too.
func New(t testing.TB, objects ...client.Object) *Server {
	t.Helper()
	scheme := runtime.NewScheme()
	// The fake client goes through all kinds at each write: all those of Kubernetes would take a third of a test's time.
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, networkingv1.AddToScheme,
		v1beta1.AddToScheme, sandboxes.AddToScheme, pools.AddToScheme} {
		check.OK(t, add(scheme))
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithTypeConverters(converters()...)
	builder.WithObjects(objects...).WithStatusSubresource(
		&v1beta1.Chat{}, &v1beta1.ChatMessage{}, &v1beta1.ChatModelConfig{}, &v1beta1.ToolApproval{},
		&v1beta1.ChatQuota{}, &v1beta1.ClusterChatQuota{}, &v1beta1.Workspace{})
	check.OK(t, index.Register(t.Context(), indexer{builder}))
	// The API server has more fields to select by than the manager's cache.
	builder.WithIndex(&v1beta1.ChatDebugStep{}, "chatRef.name", func(o client.Object) []string {
		return []string{o.(*v1beta1.ChatDebugStep).ChatRef.Name}
	})
	builder.WithIndex(&v1beta1.ToolApproval{}, index.MessagesByChat, func(o client.Object) []string {
		return []string{o.(*v1beta1.ToolApproval).Spec.ChatRef.Name}
	})
	s := &Server{Direct: builder.Build(), created: map[string]int{}}
	s.Client = interceptor.NewClient(s.Direct, s.funcs(""))
	s.Live = interceptor.NewClient(s.Direct, s.funcs("live "))
	return s
}

// indexer adds indexes to a client in memory.
type indexer struct{ *fake.ClientBuilder }

// IndexField implements client.FieldIndexer.
func (i indexer) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	i.WithIndex(o, field, keys)
	return nil
}

// Calls are those that were made so far, such as "get chat", "live list chatmessages" and "update status of chat".
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}

// Writes are the calls that write.
func (s *Server) Writes() (writes []string) {
	for _, call := range s.Calls() {
		if writing(call) {
			writes = append(writes, call)
		}
	}
	return writes
}

func writing(call string) bool { return verb(call) != "get" && verb(call) != "list" }

func verb(call string) string {
	verb, _, _ := strings.Cut(strings.TrimPrefix(call, "live "), " ")
	return verb
}

// Read reads an object as it is now.
func Read[T client.Object](t testing.TB, s *Server, o T) T {
	t.Helper()
	check.OK(t, s.Direct.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	return o
}

func (s *Server) call(words ...string) error {
	call := strings.Join(words, "")
	s.mu.Lock()
	s.calls = append(s.calls, call)
	s.mu.Unlock()
	if s.Fail == nil {
		return nil
	}
	return s.Fail(call)
}

// kind is what an object is, in lower case.
func (s *Server) kind(o runtime.Object) string {
	kind, err := s.Direct.GroupVersionKindFor(o)
	if err != nil {
		return fmt.Sprintf("%T", o)
	}
	return strings.ToLower(kind.Kind)
}

func (s *Server) funcs(reader string) interceptor.Funcs {
	type c = context.Context
	type to = client.WithWatch
	return interceptor.Funcs{
		Get: func(ctx c, via to, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return before(s.call(reader, "get ", s.kind(o)), func() error { return via.Get(ctx, key, o, opts...) })
		},
		List: func(ctx c, via to, list client.ObjectList, opts ...client.ListOption) error {
			of := strings.TrimSuffix(s.kind(list), "list") + "s"
			return before(s.call(reader, "list ", of), func() error { return via.List(ctx, list, opts...) })
		},
		Create: func(ctx c, via to, o client.Object, opts ...client.CreateOption) error {
			return before(s.call("create ", s.kind(o)), func() error { return s.create(ctx, via, o, opts...) })
		},
		Update: func(ctx c, via to, o client.Object, opts ...client.UpdateOption) error {
			return before(s.call("update ", s.kind(o)), func() error { return via.Update(ctx, o, opts...) })
		},
		Delete: func(ctx c, via to, o client.Object, opts ...client.DeleteOption) error {
			return before(s.call("delete ", s.kind(o)), func() error { return via.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx c, via to, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return before(s.call("patch ", s.kind(o)), func() error { return via.Patch(ctx, o, patch, opts...) })
		},
		Apply: func(ctx c, via to, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			u, err := decoded(o)
			if err != nil {
				return err
			}
			return before(s.call("apply ", s.kind(u)), func() error { return replaced(ctx, via, u) })
		},
		SubResourceUpdate: func(ctx c, via client.Client, sub string, o client.Object,
			opts ...client.SubResourceUpdateOption) error {
			return before(s.call("update ", sub, " of ", s.kind(o)),
				func() error { return via.SubResource(sub).Update(ctx, o, opts...) })
		},
	}
}

func before(err error, call func() error) error {
	if err != nil {
		return err
	}
	return call()
}

// create creates the object at chattest.Now, with a new UID.
func (s *Server) create(ctx context.Context, via client.Client, o client.Object, opts ...client.CreateOption) error {
	if at := o.GetCreationTimestamp(); at.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(chattest.Now))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.kind(o) + " " + o.GetName()
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("%s %d", name, s.created[name]+1)))
	}
	err := via.Create(ctx, o, opts...)
	if err == nil {
		s.created[name]++
	}
	return err
}

func decoded(o runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	text, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(text, u)
	}
	return u, err
}

// replaced is what applying comes to for the one owner of all fields. Whose field is whose takes a real API server.
func replaced(ctx context.Context, via client.Client, o *unstructured.Unstructured) error {
	there := o.DeepCopy()
	err := via.Get(ctx, client.ObjectKeyFromObject(o), there)
	if apierrors.IsNotFound(err) {
		return via.Create(ctx, o)
	}
	if err != nil {
		return err
	}
	o.SetResourceVersion(there.GetResourceVersion())
	return via.Update(ctx, o)
}

// State is everything that the server holds, without what every write changes.
func (s *Server) State(t testing.TB, lists ...client.ObjectList) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, list := range lists {
		check.OK(t, s.Direct.List(t.Context(), list))
		err := meta.EachListItem(list, func(item runtime.Object) error {
			o := item.(client.Object)
			o.SetResourceVersion("")
			o.SetManagedFields(nil)
			state[s.kind(o)+" "+o.GetNamespace()+"/"+o.GetName()] = printed(t, o)
			return nil
		})
		check.OK(t, err)
	}
	return state
}
