// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testmanager"
)

// reconcileErrors is how many passes of all controllers of this process have failed so far.
func reconcileErrors(t *testing.T) (failed float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	check.OK(t, err)
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_errors_total" {
			continue
		}
		for _, series := range family.GetMetric() {
			failed += series.GetCounter().GetValue()
		}
	}
	return failed
}

// beforeWrite makes the manager call act once, right before its first write of the kind that chosen selects.
func beforeWrite(chosen func(client.Object) bool, act func()) func(*testmanager.Options) {
	var once sync.Once
	meet := func(o client.Object) {
		if chosen(o) {
			once.Do(act)
		}
	}
	funcs := interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			meet(o)
			return c.Create(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object,
			opts ...client.SubResourceUpdateOption) error {
			meet(o)
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	}
	return func(o *testmanager.Options) {
		o.Manager.NewClient = func(cfg *rest.Config, options client.Options) (client.Client, error) {
			c, err := client.NewWithWatch(cfg, options)
			if err != nil {
				return nil, err
			}
			return interceptor.NewClient(c, funcs), nil
		}
	}
}

// terminate deletes the namespace and what is in it, as the namespace controller does, which does not run here.
func terminate(t *testing.T, ns string) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	if err := cluster.Client.Delete(context.Background(), namespace); err != nil {
		t.Errorf("deleting namespace %s: %v", ns, err)
	}
	for _, o := range []client.Object{&v1beta1.ChatMessage{}, &v1beta1.Chat{}, &v1beta1.ChatModelConfig{},
		&v1beta1.Workspace{}, &corev1.Pod{}, &corev1.ServiceAccount{}} {
		if err := cluster.Client.DeleteAllOf(context.Background(), o, client.InNamespace(ns)); err != nil {
			t.Errorf("deleting each %T of namespace %s: %v", o, ns, err)
		}
	}
}

// finalize lets a namespace go of which nothing is left.
func finalize(t *testing.T, ns string) {
	t.Helper()
	namespace := &corev1.Namespace{}
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKey{Name: ns}, namespace))
	namespace.Spec.Finalizers = nil
	check.OK(t, cluster.Client.SubResource("finalize").Update(t.Context(), namespace))
	eventually(t, "namespace "+ns+" is gone", func() bool {
		return apierrors.IsNotFound(cluster.Client.Get(t.Context(), client.ObjectKey{Name: ns}, namespace))
	})
}

// It does not run in parallel: the counter is that of all controllers of the process.
func TestANamespaceThatIsDeletedFailsNoReconcile(t *testing.T) {
	for name, chosen := range map[string]func(client.Object) bool{
		"before a chat's status is written":      isA[*v1beta1.Chat],
		"before a prompt is created":             isA[*v1beta1.ChatMessage],
		"before a workspace is created":          isA[*v1beta1.Workspace],
		"before a generation pod is created":     isA[*corev1.Pod],
		"before a ChatModelConfig's is reported": isA[*v1beta1.ChatModelConfig],
	} {
		t.Run(name, func(t *testing.T) {
			restart := stopManager(t)
			ns, begun := namespace(t), make(chan struct{})
			create(t, working(ns, "c"))
			create(t, newChat(ns, "d", "hello"))
			before := reconcileErrors(t)
			restart(beforeWrite(func(o client.Object) bool { return o.GetNamespace() == ns && chosen(o) },
				func() { terminate(t, ns); close(begun) }))
			t.Cleanup(func() { stopManager(t)() })
			if name == "before a workspace is created" {
				answers(t, assigned(t, ns, "c", 1, 1), chattest.Works("call_1"))
			}
			<-begun
			other := namespace(t)
			finalize(t, ns)
			create(t, newChat(other, "c", "hello"))
			assigned(t, other, "c", 1, 1)
			check.Equal(t, "passes failed", before, reconcileErrors(t))
		})
	}
}

func isA[T client.Object](o client.Object) bool {
	_, is := o.(T)
	return is
}
