// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Begin starts something that tests need besides the control plane, and returns how to end it; nil: it needs no end.
type Begin func(context.Context) (end func(), err error)

// Run runs a package's tests with a control plane of their own, which it puts into cluster first, and with what else is
// to be begun, in this order; it is ended in the opposite one. It returns the code to exit with.
func Run(m *testing.M, cluster **Cluster, begin ...Begin) int { return run(m, cluster, Start, begin) }

// RunWith is Run with programs that have other arguments.
func RunWith(m *testing.M, cluster **Cluster, configure func(*envtest.ControlPlane), begin ...Begin) int {
	start := func(ctx context.Context) (*Cluster, error) { return StartWith(ctx, configure) }
	return run(m, cluster, start, begin)
}

func run(m *testing.M, cluster **Cluster, start func(context.Context) (*Cluster, error), begin []Begin) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var err error
	if *cluster, err = start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = (*cluster).Stop() }() // The tests have said all there is to say.
	for _, b := range begin {
		end, err := b(ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if end != nil {
			defer end()
		}
	}
	return m.Run()
}

// Create creates the object, or fails the test.
func (c *Cluster) Create(t testing.TB, o client.Object) {
	t.Helper()
	if err := c.Client.Create(t.Context(), o); err != nil {
		t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
}

// Namespace creates an empty namespace, whose name begins so and is unlike any other, or fails the test.
func (c *Cluster) Namespace(t testing.TB, prefix string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}
	c.Create(t, ns)
	return ns.Name
}
