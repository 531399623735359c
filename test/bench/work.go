// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podstate"
)

// work measures calls that run the shortest command there is: first with a workspace that has to be created, then one
// after another.
func (b *bench) work(ctx context.Context, f *Figures, image string, turns int) error {
	f.Workspace = &Workspace{}
	var err error
	shell := corev1.Container{Name: "shell", Image: image, Command: []string{"/bin/sh", "-c", "sleep 3600"}}
	if f.Workspace.BarePod, err = b.barePod(ctx, "bare", corev1.PodSpec{AutomountServiceAccountToken: new(false),
		Containers: []corev1.Container{shell}}); err != nil {
		return err
	}
	if err := b.create(ctx, &corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "shell", Namespace: namespace,
			Labels: map[string]string{v1beta1.LabelWorkspaceTemplate: "true"}},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: v1beta1.WorkspaceContainer, Image: image}}}},
	}); err != nil {
		return err
	}
	if err := b.script(ctx, answerWithTool("execute", `{"command":"true"}`)); err != nil {
		return err
	}
	for _, name := range []string{"cold-work", "work"} {
		if err := b.newWorkingChat(ctx, name); err != nil {
			return err
		}
	}
	cold, err := b.secondSteps(ctx, "cold-work", 1)
	if err != nil {
		return err
	}
	f.Workspace.Cold = cold[0].Seconds()
	seconds, err := b.secondSteps(ctx, "work", turns+1)
	if err != nil {
		return err
	}
	f.Workspace.Execute = percentiles(seconds[1:]) // The first one creates the workspace.
	if err := b.output(ctx, &f.Workspace.Output); err != nil {
		return err
	}
	return b.agent(ctx, &f.Workspace.Agent)
}

// newWorkingChat creates a chat with a workspace of its own.
func (b *bench) newWorkingChat(ctx context.Context, name string) error {
	source := &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "shell"}}
	return b.create(ctx, &v1beta1.Chat{ObjectMeta: meta(name), Spec: v1beta1.ChatSpec{Workspace: source}})
}

// barePod is how many seconds such a pod takes until it is ready.
func (b *bench) barePod(ctx context.Context, name string, spec corev1.PodSpec) (float64, error) {
	spec.TerminationGracePeriodSeconds = new(int64(0))
	pod := &corev1.Pod{ObjectMeta: meta(name), Spec: spec}
	began := time.Now()
	if err := b.create(ctx, pod); err != nil {
		return 0, err
	}
	watching, err := b.core.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return 0, fmt.Errorf("watching the bare pod: %w", err)
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && ready(pod) {
			return time.Since(began).Seconds(), nil
		}
	}
	return 0, fmt.Errorf("the watch of the bare pod ended")
}

func ready(pod *corev1.Pod) bool {
	condition := podstate.Condition(pod, corev1.PodReady)
	return condition != nil && condition.Status == corev1.ConditionTrue
}
