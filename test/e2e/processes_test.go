// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

// kill ends a container's processes with SIGKILL, as the kernel would for want of memory. It finds them by the
// container's id in their cgroup: see localnode.
func kill(t *testing.T, ns, pod, container string) {
	t.Helper()
	signalTo(t, syscall.SIGKILL, ns, pod, container)
}

// signalTo sends a signal to a container's processes, once the kubelet says that it runs, as kill does. A container can
// have called a model before that.
func signalTo(t *testing.T, signal syscall.Signal, ns, pod, container string) {
	t.Helper()
	id := ""
	eventually(t, "container "+container+" of pod "+pod+" is said to run", func() bool {
		var p corev1.Pod
		check.OK(t, c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: pod}, &p))
		for _, s := range append(p.Status.ContainerStatuses, p.Status.InitContainerStatuses...) {
			if s.Name == container && s.State.Running != nil {
				_, id, _ = strings.Cut(s.ContainerID, "://")
			}
		}
		return id != ""
	})
	if signalWhere(t, signal, func(group, _ string) bool { return strings.Contains(group, id) }) == 0 {
		t.Fatalf("no process of container %s (%s) was found: the test must run on the node's machine", container, id)
	}
}

// killProgram kills those processes of a pod whose command line begins so, also when no status of the pod tells yet
// that they run. It returns how many those are.
func killProgram(t *testing.T, pod *corev1.Pod, begins string) (killed int) {
	t.Helper()
	its := inPod(pod)
	return signalWhere(t, syscall.SIGKILL, func(group, command string) bool {
		return strings.HasPrefix(command, begins) && its(group)
	})
}

// signalWhere sends a signal to the processes that are meant, and returns how many those are.
func signalWhere(t *testing.T, signal syscall.Signal, meant func(group, command string) bool) (reached int) {
	t.Helper()
	for _, pid := range processesWhere(t, meant) {
		if syscall.Kill(pid, signal) == nil {
			reached++
		}
	}
	return reached
}

// processesWhere are the processes that are meant, by their cgroup and their command line, its words with a blank
// behind each.
func processesWhere(t *testing.T, meant func(group, command string) bool) (pids []int) {
	t.Helper()
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	check.OK(t, err)
	for _, path := range groups {
		of := filepath.Dir(path)
		group, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		command, err := os.ReadFile(filepath.Join(of, "cmdline"))
		if err != nil || !meant(string(group), strings.ReplaceAll(string(command), "\x00", " ")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(of)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// inPod says of a process whether its cgroup is one of the pod's.
func inPod(pod *corev1.Pod) func(group string) bool {
	uid := string(pod.UID)
	return func(group string) bool {
		return strings.Contains(group, uid) || strings.Contains(group, strings.ReplaceAll(uid, "-", "_"))
	}
}

// leader is the pod of the manager that works.
func leader(t *testing.T) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	eventually(t, "a manager leads", func() bool {
		var lease coordinationv1.Lease
		key := client.ObjectKey{Namespace: "parley-system", Name: shard.Scope{}.Lease()}
		check.OK(t, client.IgnoreNotFound(c.Get(t.Context(), key, &lease)))
		if holder := lease.Spec.HolderIdentity; holder != nil {
			key.Name, _, _ = strings.Cut(*holder, "_")
			err := c.Get(t.Context(), key, &pod)
			check.OK(t, client.IgnoreNotFound(err))
			return err == nil
		}
		return false
	})
	return &pod
}

func killManager(t *testing.T) {
	t.Helper()
	pod := leader(t)
	kill(t, pod.Namespace, pod.Name, "manager")
}

// gateways are the names of the pods of two gateways that serve.
func (w *world) gateways() (names []string) {
	w.t.Helper()
	w.eventually("two gateways serve", func() bool {
		var pods corev1.PodList
		check.OK(w.t, c.List(w.t.Context(), &pods, client.InNamespace("parley-system"),
			client.MatchingLabels{"app.kubernetes.io/component": "gateway"}))
		names = nil
		for i := range pods.Items {
			p := &pods.Items[i]
			if p.DeletionTimestamp == nil && len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].Ready {
				names = append(names, p.Name)
			}
		}
		return len(names) == 2
	})
	return names
}

// forced deletes an object without waiting for anybody.
func forced(t *testing.T, o client.Object) {
	t.Helper()
	check.OK(t, client.IgnoreNotFound(c.Delete(t.Context(), o, client.GracePeriodSeconds(0))))
}

// killGenerator kills the generator of an attempt as soon as that has begun, or as soon as there is one. Where it has
// been killed before, its pod goes with it, as when a node is lost: the kubelet starts a container again at once the
// first time, and then after waits that grow from 10 s on. Of one step only the pod is removed, and the process ends
// when the kubelet sees to that.
func killGenerator(w *world, s *step) {
	pod, gone := &corev1.Pod{ObjectMeta: w.meta(s.chat.Status.Generation.Pod)}, false
	w.eventually("the generator is killed, or its pod is gone", func() bool {
		gone = w.gone(pod) // It went with the step before, and takes this attempt along.
		return gone || s.number == ofTheTest || killProgram(w.t, pod, generator) > 0
	})
	if s.killed = true; !gone && (s.number == ofTheTest || restarted(pod)) {
		forced(w.t, pod)
	}
}

// restarted reports whether a container of the pod has been started again.
func restarted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses,
		func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 })
}

// generator and agentInit begin the command lines of the generator and of a workspace's agent.
const generator, agentInit = "/generator ", protocol.AgentDir + "/workspace-agent init "

// killTheManager kills the manager that works, with its pod, and waits until the other one works: see killGenerator.
func killTheManager(w *world, s *step) {
	s.killed = true
	pod := leader(w.t)
	kill(w.t, pod.Namespace, pod.Name, "manager")
	forced(w.t, pod)
	w.eventually("the other manager works", func() bool { return leader(w.t).UID != pod.UID })
}

// killKubelet kills the kubelet while the model's first test runs, and waits until the node is ready again.
func killKubelet(w *world, s *step) {
	if s.killed = s.number == ofTheTest; !s.killed {
		return
	}
	w.eventually("the command runs", func() bool {
		pod := w.housing()
		begun, err := w.exec(pod.Name, v1beta1.WorkspaceContainer, "cat /workspace/begun")
		return err == nil && begun == "test\n"
	})
	restart := exec.CommandContext(w.t.Context(), "/bin/sh", "-c", os.Getenv("DEVCLUSTER")+" restart kubelet")
	if out, err := restart.CombinedOutput(); err != nil {
		w.t.Fatalf("restarting the kubelet: %v\n%s", err, out)
	}
}

// loseWorkspace removes the pod of the workspace before a step, while no command runs: the chat is held meanwhile.
func (w *world) loseWorkspace(name string) {
	w.t.Helper()
	chat := w.chat(name)
	w.patch(chat, `{"spec":{"suspend":true}}`)
	w.eventually("the chat is held", func() bool {
		ready := meta.FindStatusCondition(w.chat(name).Status.Conditions, v1beta1.ConditionReady)
		return v1beta1.ReasonOf(ready) == v1beta1.ReasonSuspended
	})
	lost := w.housing()
	forced(w.t, lost)
	w.eventually("the workspace has another pod", func() bool {
		status := w.workspace(name).Status
		return status.Phase == v1beta1.WorkspacePhaseReady && status.Pod.UID != string(lost.UID)
	})
	w.patch(chat, `{"spec":{"suspend":false}}`)
}

// expectPeak checks that no process whose command line begins so, in the pods of a component, has ever had more
// resident memory, in MiB.
func (w *world) expectPeak(t *testing.T, component, begins string, most int) {
	t.Helper()
	var pods corev1.PodList
	check.OK(t, c.List(t.Context(), &pods, client.InNamespace(w.ns),
		client.MatchingLabels{"parley.dev/component": component}))
	seen, highest := 0, 0
	for i := range pods.Items {
		its := inPod(&pods.Items[i])
		for _, pid := range processesWhere(t, func(group, command string) bool {
			return strings.HasPrefix(command, begins) && its(group)
		}) {
			seen++
			highest = max(highest, peak(t, pid))
		}
	}
	t.Logf("%d processes %s have had %d MiB at most", seen, strings.TrimSpace(begins), highest)
	if seen == 0 || highest > most {
		t.Errorf("want some, and %d MiB at most", most)
	}
}

// peak is the most resident memory that a process has had, in MiB, rounded up.
func peak(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	check.OK(t, err)
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	line, _, _ := strings.Cut(after, "\n")
	kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(line), " kB"))
	if err != nil {
		t.Fatalf("process %d says of its memory %q", pid, line)
	}
	return (kib + 1023) / 1024
}

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
