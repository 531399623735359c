// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/internal/pods/podspec"
)

// maxKills is how often one container is killed before its pod is deleted instead: the kubelet waits the longer before
// it starts a container again the more often that has ended, up to minutes, which would be all that the soak sees.
const maxKills = 2

// errNothing means that there is nothing to kill at present.
var errNothing = errors.New("there is none")

// deed is one kind of damage. do returns what it met, in words.
type deed struct {
	name string
	do   func(context.Context) (string, error)
}

// chaos kills what Parley runs on.
type chaos struct {
	*world
	random *rand.Rand
	// kills by container id; those of the pods that run.
	kills map[string]int
	// count of the deeds that were done, by name.
	count map[string]int
	deeds []deed
	// upgrade is what it does in place of damage; nil: there is none.
	upgrade *upgrade
}

func newChaos(w *world) *chaos {
	c := &chaos{world: w, random: rand.New(rand.NewPCG(w.seed, 1<<32)), kills: map[string]int{}, count: map[string]int{}}
	c.deeds = []deed{
		{"delete a generation pod by force",
			func(ctx context.Context) (string, error) { return c.remove(ctx, c.generation(), new(int64)) }},
		{"delete a generation pod", func(ctx context.Context) (string, error) { return c.remove(ctx, c.generation(), nil) }},
	}
	if len(w.images) > 0 {
		c.upgrade = newUpgrade(w)
		c.deeds = append(c.deeds, c.upgrade.moves()...)
		return c
	}
	manager, gateway := c.system("manager"), c.system("gateway")
	manager.leads = true
	c.deeds = append(c.deeds, deed{"delete the gateway pod",
		func(ctx context.Context) (string, error) { return c.remove(ctx, gateway, nil) }})
	if len(w.devcluster) > 0 {
		c.deeds = append(c.deeds,
			deed{"delete the leading manager pod",
				func(ctx context.Context) (string, error) { return c.remove(ctx, manager, nil) }},
			deed{"kill the leading manager",
				func(ctx context.Context) (string, error) { return c.kill(ctx, manager, "manager") }},
			deed{"kill a generator",
				func(ctx context.Context) (string, error) { return c.kill(ctx, c.generation(), "generator") }},
			deed{"restart the API server", c.restartAPIServer})
		return c
	}
	c.deeds = append(c.deeds, deed{"delete the leading manager pod by force",
		func(ctx context.Context) (string, error) { return c.remove(ctx, manager, new(int64)) }})
	c.log.Info("no process is killed and the API server is not restarted", "because",
		"the cluster is not the local one, whose node is this machine")
	return c
}

// reign does the deeds in random order, each as often as any other, until the time is over and each move of an upgrade
// was made.
func (c *chaos) reign(ctx context.Context) {
	var deck []deed
	end := time.Now().Add(c.duration)
	for time.Now().Before(end) || c.upgrade.isUnfinished() && time.Now().Before(end.Add(c.settle)) {
		if !pause(ctx, c.every/2+time.Duration(c.random.Int64N(int64(c.every)))) {
			return
		}
		if len(deck) == 0 {
			deck = slices.Clone(c.deeds)
			c.random.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		next := deck[0]
		deck = deck[1:]
		doing, cancel := context.WithTimeout(ctx, 90*time.Second)
		met, err := next.do(doing)
		cancel()
		if err != nil {
			c.log.Info("CHAOS: "+next.name+": not done", "because", err)
			continue
		}
		c.count[next.name]++
		c.log.Info("CHAOS: "+next.name, "met", met)
	}
}

// selection is some pods of a namespace; leads: that of the leader.
type selection struct {
	ns, labels string
	leads      bool
}

func (c *chaos) system(component string) selection {
	return selection{ns: systemNamespace, labels: "app.kubernetes.io/component=" + component}
}

func (c *chaos) generation() selection {
	return selection{ns: c.ns, labels: podspec.LabelComponent + "=" + podspec.ComponentGeneration}
}

// leader is the name of the pod whose manager works.
func leader(ctx context.Context, core kubernetes.Interface) (string, error) {
	lease, err := core.CoordinationV1().Leases(systemNamespace).Get(ctx, shard.Scope{}.Lease(), metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", fmt.Errorf("looking for the leader: %w", cmp.Or(err, errNothing))
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return name, nil
}

// victim is one of the pods that run, at random.
func (c *chaos) victim(ctx context.Context, s selection) (*corev1.Pod, error) {
	pods, err := c.core.CoreV1().Pods(s.ns).List(ctx, metav1.ListOptions{LabelSelector: s.labels})
	if err != nil {
		return nil, fmt.Errorf("looking for pods: %w", err)
	}
	leads := ""
	if s.leads {
		if leads, err = leader(ctx, c.core); err != nil {
			return nil, err
		}
	}
	alive := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning || s.leads && p.Name != leads
	})
	if len(alive) == 0 {
		return nil, errNothing
	}
	return &alive[c.random.IntN(len(alive))], nil
}

// kill ends a container's process. Where that happened often or the container does not run, it deletes the pod.
func (c *chaos) kill(ctx context.Context, s selection, container string) (string, error) {
	pod, err := c.victim(ctx, s)
	if err != nil {
		return "", err
	}
	at := string(pod.UID) + container
	id := containerID(pod, container)
	if id == "" || c.kills[at] >= maxKills {
		return c.removePod(ctx, pod, nil)
	}
	c.kills[at]++
	c.keepLogs(ctx, pod)
	if err := killProcesses(id); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, killed %d times", pod.Name, c.kills[at]), nil
}

func (c *chaos) remove(ctx context.Context, s selection, grace *int64) (string, error) {
	pod, err := c.victim(ctx, s)
	if err != nil {
		return "", err
	}
	return c.removePod(ctx, pod, grace)
}

func (c *chaos) removePod(ctx context.Context, pod *corev1.Pod, grace *int64) (string, error) {
	c.keepLogs(ctx, pod)
	if err := c.core.CoreV1().Pods(pod.Namespace).
		Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: grace}); err != nil {
		return "", fmt.Errorf("deleting pod %s: %w", pod.Name, err)
	}
	return "deleted " + pod.Name, nil
}

// restartAPIServer kills the API server and waits until a new one serves.
func (c *chaos) restartAPIServer(ctx context.Context) (string, error) {
	args := append(slices.Clone(c.devcluster[1:]), "restart-apiserver")
	out, err := exec.CommandContext(ctx, c.devcluster[0], args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("restarting the API server: %w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// containerID is the id under which a running container's processes are found; empty if it does not run.
func containerID(pod *corev1.Pod, container string) string {
	for _, s := range append(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses...) {
		if s.Name == container && s.State.Running != nil {
			_, id, _ := strings.Cut(s.ContainerID, "://")
			return id
		}
	}
	return ""
}

// killProcesses ends a container's processes with SIGKILL, as the kernel would for want of memory. They are found by
// the container's id in their control group.
func killProcesses(id string) error {
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return fmt.Errorf("looking for processes: %w", err)
	}
	killed := 0
	for _, path := range groups {
		group, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(group), id) {
			continue // It may have ended meanwhile.
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		return fmt.Errorf("no process of container %s was killed: the soak must run as root on the node's machine", id)
	}
	return nil
}
