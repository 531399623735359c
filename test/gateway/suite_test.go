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
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/internal/stream/publish"
	"parley.dev/parley/internal/stream/relay"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realgateway"
	"parley.dev/parley/test/kit/testcluster"
)

var (
	cluster *testcluster.Cluster
	core    *kubernetes.Clientset
)

func TestMain(m *testing.M) {
	os.Exit(realgateway.Main(func() int { return testcluster.Run(m, &cluster, begin) }))
}

// begin brings the roles that people get.
func begin(ctx context.Context) (end func(), err error) {
	if core, err = kubernetes.NewForConfig(cluster.Config); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(testcluster.Path("config", "rbac", "users.yaml"))
	if err != nil {
		return nil, err
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			return nil, err
		}
		if role.Kind != "ClusterRole" {
			continue
		}
		if err := cluster.Client.Create(ctx, &role); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// world is a namespace with a gateway, and generation pods that are relays alone.
type world struct {
	t         testing.TB
	namespace string
	gateway   *realgateway.Gateway
	pods      []*pod
}

// pod is a generation pod: its relay, and a client of that.
type pod struct {
	name      string
	generator *publish.Client
	readers   *relay.Subscribers
}

// newWorld makes a world with one generation pod.
func newWorld(t testing.TB) *world { return newWorldOf(t, 1) }

// newWorldOf makes a world with so many generation pods, each with an address of its own.
func newWorldOf(t testing.TB, pods int, args ...string) *world {
	t.Helper()
	w := &world{t: t, namespace: cluster.Namespace(t, "gateway")}
	cluster.Create(t, &corev1.ServiceAccount{ObjectMeta: w.meta("parley-gateway")})
	cluster.Create(t, &corev1.ServiceAccount{ObjectMeta: w.meta("parley-generation")})
	port := "0" // All relays have the same one.
	for i := range pods {
		p, address := &pod{name: fmt.Sprintf("pod-%d", i+1)}, fmt.Sprintf("127.0.0.%d", i+1)
		port = w.relay(p, address, port)
		meta := w.meta(p.name)
		meta.Labels = map[string]string{"parley.dev/component": "generation"}
		generation := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{ServiceAccountName: "parley-generation",
			AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{Name: "generator", Image: "none"}}}}
		cluster.Create(t, generation)
		generation.Status.PodIP, generation.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
		check.OK(t, cluster.Client.Status().Update(t.Context(), generation))
		w.pods = append(w.pods, p)
	}
	w.gateway = realgateway.Start(t, cluster.Config, w.namespace, append(args, "--relay-port="+port)...)
	return w
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// anyone lets everybody read.
type anyone struct{}

// Authorize implements relay.Authorizer.
func (anyone) Authorize(context.Context, string) error { return nil }

// relay starts that of a pod, and returns its port.
func (w *world) relay(p *pod, address, port string) string {
	dir := w.t.TempDir()
	socket := filepath.Join(dir, "r.sock")
	store, err := relay.NewStore(relay.Options{MarkerDir: filepath.Join(dir, "episodes"), Now: time.Now})
	check.OK(w.t, err)
	local, err := relay.ListenLocal(socket)
	check.OK(w.t, err)
	public, err := net.Listen("tcp4", net.JoinHostPort(address, port))
	check.OK(w.t, err)
	p.readers = &relay.Subscribers{Store: store, Authorizer: anyone{}}
	server := &relay.Server{Local: local, Public: public, Subscribers: p.readers,
		Keys: &relay.IssuerKeys{File: filepath.Join(dir, "keys.json"), Now: time.Now}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() { cancel(); running.Wait() })
	p.generator = publish.New(socket, "incarnation-1", time.Now)
	_, port, err = net.SplitHostPort(public.Addr().String())
	check.OK(w.t, err)
	return port
}

// person makes somebody with a cluster role in the namespace, and returns a token of theirs.
func (w *world) person(name, role string, seconds int64) string {
	w.t.Helper()
	cluster.Create(w.t, &corev1.ServiceAccount{ObjectMeta: w.meta(name)})
	cluster.Create(w.t, &rbacv1.RoleBinding{ObjectMeta: w.meta(name),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.namespace, Name: name}}})
	return w.token(name, seconds)
}

// token is one of an account of the namespace, which the API server takes for so long: at least ten minutes.
func (w *world) token(account string, seconds int64) string {
	w.t.Helper()
	request, err := core.CoreV1().ServiceAccounts(w.namespace).CreateToken(w.t.Context(), account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(seconds)}},
		metav1.CreateOptions{})
	check.OK(w.t, err)
	return request.Status.Token
}
