// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	ctrl "sigs.k8s.io/controller-runtime"
)

// execTime bounds what is run in a container, which takes a moment.
const execTime = 20 * time.Second

// exec runs a shell's script in a container, as kubectl exec does, and returns its standard output.
func (w *world) exec(pod, container, script string) (string, error) {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	url := core.CoreV1().RESTClient().Post().Namespace(w.ns).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: []string{"/bin/sh", "-c", script},
			Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewWebSocketExecutor(cfg, "GET", url.String())
	if err != nil {
		return "", fmt.Errorf("preparing to exec in pod %s: %w", pod, err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), execTime)
	defer cancel()
	var out, errors bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &errors})
	if err != nil {
		return out.String(), fmt.Errorf("running a script in pod %s: %w: %s", pod, err, errors.String())
	}
	return out.String(), nil
}
