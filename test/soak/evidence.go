// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keepLogs writes the logs of a pod that is about to be killed to the folder. Logs that cannot be had are not worth a
// word: the container may not have begun.
func (w *world) keepLogs(ctx context.Context, pod *corev1.Pod) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		for _, previous := range []bool{true, false} {
			raw, err := w.core.CoreV1().Pods(pod.Namespace).
				GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name, Previous: previous, Timestamps: true}).DoRaw(ctx)
			if err != nil || len(raw) == 0 {
				continue
			}
			name := fmt.Sprintf("%s-%s-%s.log", time.Now().UTC().Format("150405"), pod.Name, container.Name)
			if previous {
				name += ".previous"
			}
			if err := w.write(name, raw); err != nil {
				w.log.Info("a log could not be kept", "because", err)
			}
		}
	}
}

// keep writes what was found at the end, and the logs of all that runs, for whoever looks for the reason. The namespace
// stays as it is.
func (w *world) keep(ctx context.Context, end *state) error {
	raw, err := json.MarshalIndent(map[string]any{"chats": end.chats, "messages": end.messages, "pods": end.pods,
		"calls": end.calls}, "", " ")
	if err != nil {
		return fmt.Errorf("writing what was found: %w", err)
	}
	if err := w.write("state.json", raw); err != nil {
		return err
	}
	for _, ns := range []string{systemNamespace, w.ns} {
		pods, err := w.core.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("looking for logs: %w", err)
		}
		for i := range pods.Items {
			w.keepLogs(ctx, &pods.Items[i])
		}
	}
	w.log.Info("what was found, and the logs, are kept", "folder", w.out, "namespace", w.ns)
	return nil
}

func (w *world) write(name string, raw []byte) error {
	if err := errors.Join(os.MkdirAll(w.out, 0o755), os.WriteFile(filepath.Join(w.out, name), raw, 0o644)); err != nil {
		return fmt.Errorf("keeping %s: %w", name, err)
	}
	return nil
}
