// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
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

// usage is what Parley's containers use: CPU in seconds since their start, memory in MiB.
type usage struct{ cpu, rss Components }

func (c Components) minus(o Components) Components {
	return Components{c.Manager - o.Manager, c.Generator - o.Generator, c.Relay - o.Relay, c.Gateway - o.Gateway}
}

func (c Components) per(n float64) Components {
	return Components{c.Manager / n, c.Generator / n, c.Relay / n, c.Gateway / n}
}

// of is the component of that name and reports whether it is one.
func (c *Components) of(name string) *float64 {
	return map[string]*float64{"manager": &c.Manager, "generator": &c.Generator, "relay": &c.Relay,
		"gateway": &c.Gateway}[name]
}

// usage asks the kubelets. CPU is the sum over all containers of a component, memory that of the largest.
func (b *bench) usage(ctx context.Context) (usage, error) {
	var total usage
	nodes, err := b.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return total, fmt.Errorf("listing nodes: %w", err)
	}
	for i := range nodes.Items {
		raw, err := b.core.CoreV1().RESTClient().Get().Resource("nodes").Name(nodes.Items[i].Name).SubResource("proxy").
			Suffix("stats/summary").Param("only_cpu_and_memory", "true").DoRaw(ctx)
		if err != nil {
			return total, fmt.Errorf("asking the kubelet of node %s: %w", nodes.Items[i].Name, err)
		}
		if err := total.add(raw); err != nil {
			return total, err
		}
	}
	return total, nil
}

func (u *usage) add(raw []byte) error {
	var summary struct {
		Pods []struct {
			PodRef     struct{ Namespace string }
			Containers []struct {
				Name   string
				CPU    struct{ UsageCoreNanoSeconds float64 }
				Memory struct{ RSSBytes float64 }
			}
		}
	}
	if err := json.Unmarshal(raw, &summary); err != nil {
		return fmt.Errorf("reading the kubelet's summary: %w", err)
	}
	for _, pod := range summary.Pods {
		for _, c := range pod.Containers {
			if cpu, rss := u.cpu.of(c.Name), u.rss.of(c.Name); cpu != nil &&
				(pod.PodRef.Namespace == namespace || pod.PodRef.Namespace == "parley-system") {
				*cpu += c.CPU.UsageCoreNanoSeconds / 1e9
				*rss = max(*rss, c.Memory.RSSBytes/(1<<20))
			}
		}
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

// managerMemory is the most that the manager has in the half minute after it was started: the kubelet measures every
// ten seconds or so.
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
