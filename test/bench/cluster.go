// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/internal/pods/podspec"
)

// writeCounts are what the API server has counted since it was started, reads those of chats and
// messages that went to etcd.
type writeCounts struct{ writes, events, reads float64 }

// serverMetrics are the API server's own.
func (b *bench) serverMetrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	raw, err := b.core.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	return families, nil
}

// serverCPU is the CPU time that the API server has used since it was started, without etcd, in seconds.
func (b *bench) serverCPU(ctx context.Context) (seconds float64, err error) {
	families, err := b.serverMetrics(ctx)
	for _, metric := range families["process_cpu_seconds_total"].GetMetric() {
		seconds += metric.GetCounter().GetValue()
	}
	return seconds, err
}

// countWrites reads the API server's own counters of requests that change something.
func (b *bench) countWrites(ctx context.Context) (writeCounts, error) {
	families, err := b.serverMetrics(ctx)
	if err != nil {
		return writeCounts{}, err
	}
	var counts writeCounts
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		label := labelsOf(metric)
		if !slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE", "APPLY"}, label["verb"]) {
			continue
		}
		switch label["resource"] {
		case "chats", "chatmessages":
			counts.writes += metric.GetCounter().GetValue()
		case "events":
			if label["group"] == "events.k8s.io" {
				counts.events += metric.GetCounter().GetValue()
			}
		}
	}
	for _, metric := range families["etcd_requests_total"].GetMetric() {
		label := labelsOf(metric)
		if label["operation"] == "get" && (label["resource"] == "chats" || label["resource"] == "chatmessages") {
			counts.reads += metric.GetCounter().GetValue()
		}
	}
	return counts, nil
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

// settledWrites counts once nothing is being written any more:
// what is beside the path of a turn may come a little later.
func (b *bench) settledWrites(ctx context.Context) (writeCounts, error) {
	last, err := b.countWrites(ctx)
	for err == nil {
		time.Sleep(500 * time.Millisecond)
		var now writeCounts
		if now, err = b.countWrites(ctx); now == last {
			return now, err
		}
		last = now
	}
	return last, err
}

// usage is what Parley's programs say of themselves: CPU in seconds since the start of each, and the most memory that
// one of a component has, in MiB. The kubelet measures only every ten seconds or so, which is longer than a burst.
type usage struct {
	cpu map[program]float64
	rss Components
}

// program is that of a container.
type program struct{ pod, component string }

// metricsPorts are where the programs of components serve their metrics.
var metricsPorts = map[string]int{
	"manager": 8080, "gateway": 8082, "generator": podspec.MetricsPort, "relay": podspec.RelayMetricsPort,
}

// since is the CPU that components have used since then. A program that was not there then counts from its start.
func (u usage) since(then usage) (used Components) {
	for p, seconds := range u.cpu {
		*used.of(p.component) += max(0, seconds-then.cpu[p]) // A container may have been restarted.
	}
	return used
}

func (c Components) per(n float64) Components {
	return Components{c.Manager / n, c.Generator / n, c.Relay / n, c.Gateway / n}
}

// of is the component of that name and reports whether it is one.
func (c *Components) of(name string) *float64 {
	return map[string]*float64{"manager": &c.Manager, "generator": &c.Generator, "relay": &c.Relay,
		"gateway": &c.Gateway}[name]
}

// usage asks the programs of all pods that are ready.
func (b *bench) usage(ctx context.Context) (usage, error) {
	total := usage{cpu: map[program]float64{}}
	for _, in := range []string{namespace, "parley-system"} {
		pods, err := b.core.CoreV1().Pods(in).List(ctx, metav1.ListOptions{})
		if err != nil {
			return total, fmt.Errorf("listing the pods of %s: %w", in, err)
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && ready(pod) {
				if err := total.add(ctx, b, pod); err != nil {
					return total, err
				}
			}
		}
	}
	return total, nil
}

func (u *usage) add(ctx context.Context, b *bench, pod *corev1.Pod) error {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		port, ok := metricsPorts[c.Name]
		if !ok {
			continue
		}
		one, err := b.process(ctx, pod, strconv.Itoa(port))
		if err != nil {
			return err
		}
		rss := u.rss.of(c.Name)
		u.cpu[program{pod.Name, c.Name}], *rss = one.cpu, max(*rss, one.RSS)
	}
	return nil
}

// countPods counts the generation pods.
func (b *bench) countPods(ctx context.Context, f *Figures) error {
	pods, err := b.core.CoreV1().Pods(namespace).
		List(ctx, metav1.ListOptions{LabelSelector: podspec.LabelComponent + "=" + podspec.ComponentGeneration})
	if err != nil {
		return fmt.Errorf("listing generation pods: %w", err)
	}
	f.GenerationPods = len(pods.Items)
	return nil
}

// managerMemory is the most that the manager has in the half minute after it was started.
func (b *bench) managerMemory(ctx context.Context) (float64, error) {
	most := 0.0
	for range 15 {
		time.Sleep(2 * time.Second)
		used, err := b.usage(ctx)
		if err != nil {
			return 0, err
		}
		most = max(most, used.rss.Manager)
	}
	return most, nil
}

// scaleManager stops or starts the manager and waits until that is so.
func (b *bench) scaleManager(ctx context.Context, replicas int32) error {
	deployments := b.core.AppsV1().Deployments("parley-system")
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "parley-manager", Namespace: "parley-system"},
		Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	if _, err := deployments.UpdateScale(ctx, "parley-manager", scale, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("scaling the manager: %w", err)
	}
	for {
		pods, err := b.core.CoreV1().Pods("parley-system").
			List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=manager"})
		if err != nil {
			return fmt.Errorf("looking at the manager: %w", err)
		}
		d, err := deployments.Get(ctx, "parley-manager", metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("looking at the manager: %w", err)
		}
		if len(pods.Items) == int(replicas) && d.Status.ReadyReplicas == replicas {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}
