// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway runs the gateway as a program before a real API server: what many people at once cost it, what it
// adds to a request, and the page on long and on changing chats. The test says what the manager and the generation
// pods would.
package gateway

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/internal/stream/publish"
	"parley.dev/parley/internal/stream/relay"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realgateway"
	"parley.dev/parley/test/kit/realrelay"
	"parley.dev/parley/test/kit/testcluster"
)

var cluster *testcluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(realgateway.Main(func() int { return testcluster.Run(m, &cluster, begin) }))
}

// begin creates the roles of people.
func begin(ctx context.Context) (end func(), err error) {
	return nil, cluster.CreateClusterRoles(ctx, testcluster.Path("config", "rbac", "users.yaml"))
}

// world is a namespace with a gateway, and generation pods that are relays alone.
type world struct {
	t         testing.TB
	namespace string
	gateway   *realgateway.Gateway
	pods      []*pod
	args      []string // of gateways
}

// pod is a generation pod: its relay, and a client of that.
type pod struct {
	name      string
	generator *publish.Client
	relay     *realrelay.Relay
}

// newWorld makes a world with one generation pod.
func newWorld(t testing.TB) *world { return newWorldOf(t, 1) }

// newWorldOf makes a world with so many generation pods, each with an address of its own.
func newWorldOf(t testing.TB, pods int, args ...string) *world {
	t.Helper()
	w := &world{t: t, namespace: cluster.Namespace(t, "gateway")}
	cluster.Account(t, w.namespace, "parley-gateway")
	cluster.Account(t, w.namespace, "parley-generation")
	port := "0" // All relays have the same one.
	for i := range pods {
		p, address := &pod{name: fmt.Sprintf("pod-%d", i+1)}, fmt.Sprintf("127.0.0.%d", i+1)
		p.relay = realrelay.Start(t, net.JoinHostPort(address, port), func(s *relay.Subscribers, _ *relay.IssuerKeys) {
			s.Authorizer = realrelay.Anyone{}
		})
		p.generator, port = publish.New(p.relay.Socket, "incarnation-1", time.Now), strconv.Itoa(p.relay.Port())
		meta := w.meta(p.name)
		meta.Labels = map[string]string{"parley.dev/component": "generation"}
		generation := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{ServiceAccountName: "parley-generation",
			AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{Name: "generator", Image: "none"}}}}
		cluster.Create(t, generation)
		generation.Status.PodIP, generation.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
		check.OK(t, cluster.Client.Status().Update(t.Context(), generation))
		w.pods = append(w.pods, p)
	}
	w.args = append(args, "--relay-port="+port)
	w.gateway = w.startGateway()
	return w
}

func (w *world) startGateway() *realgateway.Gateway {
	w.t.Helper()
	return realgateway.Start(w.t, cluster.Config, w.namespace, w.args...)
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// person creates an account with a cluster role in the namespace, and returns its token.
func (w *world) person(name, role string) string {
	w.t.Helper()
	cluster.Account(w.t, w.namespace, name)
	cluster.Bind(w.t, w.namespace, name, "ClusterRole", role)
	return cluster.Token(w.t, w.namespace, name)
}
