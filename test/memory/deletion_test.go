// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"context"
	"flag"
	"path/filepath"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/testcluster"
)

var chatsToDelete = flag.Int("deleted", 300, "how many chats the benchmark of deletions deletes for each figure")

const (
	// turnsToDelete of a chat that is deleted have two messages each.
	turnsToDelete = 4
	// collectorRate is that of the garbage collector's requests: what limits it is its work.
	collectorRate = 500
)

// deletions is what the benchmark measures.
type deletions struct {
	Chats    int `json:"chats"`
	Messages int `json:"messages"`
	// Floor is of a kind without a schema, which nobody watches but the garbage collector.
	Floor struct {
		// OneByOne: as many clients as there are writers delete each.
		OneByOne deletion `json:"one_by_one"`
		// Collection: one request deletes all.
		Collection deletion `json:"collection"`
		// Collected: the garbage collector deletes them, since their owners are gone.
		Collected deletion `json:"garbage_collected"`
		// OfNamespace: they go with their namespace.
		OfNamespace deletion `json:"of_namespace"`
	} `json:"floor"`
	// OfChats: messages whose chats are deleted. OfNamespace: messages that go with their namespace.
	OfChats     deletion `json:"of_chats"`
	OfNamespace deletion `json:"of_namespace"`
}

// deletion is how messages go.
type deletion struct {
	// PerSecond are the messages that are gone in a second.
	PerSecond float64 `json:"per_s"`
	// CPU that the API server takes for each message until it is gone, in milliseconds of one processor.
	CPU float64 `json:"api_server_cpu_ms"`
	// Requests to the API server for each message, by everybody.
	Requests float64 `json:"requests"`
}

// BenchmarkDeletion deletes chats at rest before a manager and Kubernetes' own controllers.
func BenchmarkDeletion(b *testing.B) {
	f := &deletions{Chats: *chatsToDelete, Messages: *chatsToDelete * 2 * turnsToDelete}
	bottom := installFloor(b)
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig); err != nil {
		b.Fatal(err)
	}
	stop, err := testcluster.StartControllers(b.Context(), kubeconfig, collectorRate,
		"garbage-collector-controller", "namespace-controller")
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	for b.Loop() {
		bottom.measure(b, f)
		f.measureChats(b)
	}
	for name, v := range map[string]deletion{"one-by-one": f.Floor.OneByOne, "collection": f.Floor.Collection,
		"collected": f.Floor.Collected, "floor-namespace": f.Floor.OfNamespace, "chats": f.OfChats,
		"namespace": f.OfNamespace} {
		b.ReportMetric(v.PerSecond, name+"/s")
		b.ReportMetric(v.CPU, name+"-cpu-ms")
		b.ReportMetric(v.Requests, name+"-requests")
	}
	writeFigures(b, f)
}

// measureChats deletes chats, and a namespace of chats.
func (f *deletions) measureChats(b *testing.B) {
	b.Helper()
	m := startManager(b)
	defer m.stop()
	for _, way := range []struct {
		into   *deletion
		remove func(namespace string)
	}{
		{&f.OfChats, func(namespace string) {
			eachOf(b, f.Chats, func(ctx context.Context, i int) error {
				return cluster.Client.Delete(ctx, chattest.In(namespace, chattest.Chat(nameAtRest(i))))
			})
		}},
		{&f.OfNamespace, func(namespace string) { removeNamespace(b, namespace) }},
	} {
		namespace := cluster.Namespace(b, "deleted")
		fill(b, namespace, f.Chats, turnsToDelete)
		m.settle()
		*way.into = f.time(b, namespace, v1beta1.GroupVersion.WithKind("ChatMessage"), way.remove)
	}
}

// time deletes the messages of a namespace.
func (f *deletions) time(b *testing.B, namespace string, kind schema.GroupVersionKind,
	remove func(namespace string)) deletion {
	b.Helper()
	before := account(b)
	began := time.Now()
	remove(namespace)
	untilGone(b, namespace, kind)
	taken, n := time.Since(began).Seconds(), float64(f.Messages)
	after := account(b)
	return deletion{PerSecond: n / taken, CPU: 1000 * (after.cpu - before.cpu) / n,
		Requests: (after.requests - before.requests) / n}
}

func removeNamespace(b *testing.B, name string) {
	b.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := cluster.Client.Delete(b.Context(), namespace); err != nil {
		b.Fatal(err)
	}
}

// untilGone waits until the namespace has no object of the kind.
func untilGone(b *testing.B, namespace string, kind schema.GroupVersionKind) {
	b.Helper()
	if err := wait.PollUntilContextTimeout(b.Context(), 20*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			var left metav1.PartialObjectMetadataList
			left.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			err := cluster.Client.List(ctx, &left, client.InNamespace(namespace), client.Limit(1))
			return err == nil && len(left.Items) == 0, err
		}); err != nil {
		b.Fatal(err)
	}
}

// spent is what the API server has done since it was started: CPU seconds, and requests that it has answered.
type spent struct{ cpu, requests float64 }

func account(b *testing.B) (sum spent) {
	b.Helper()
	core, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		b.Fatal(err)
	}
	raw, err := core.RESTClient().Get().AbsPath("/metrics").DoRaw(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	if err != nil {
		b.Fatal(err)
	}
	for _, metric := range families["process_cpu_seconds_total"].GetMetric() {
		sum.cpu += metric.GetCounter().GetValue()
	}
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		if label := metric.GetLabel(); slices.ContainsFunc(label, func(l *dto.LabelPair) bool {
			return l.GetName() == "verb" && l.GetValue() != "WATCH" && l.GetValue() != "LIST" // The benchmark looks by lists.
		}) {
			sum.requests += metric.GetCounter().GetValue()
		}
	}
	return sum
}
