// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/modelserver"
)

// commands is how many run beside the agent: as many as may.
const commands = 100

// agent measures the memory of a workspace's agent, with nothing to do and with as many commands as may run.
func (b *bench) agent(ctx context.Context, a *Agent) error {
	if err := b.newWorkingChat(ctx, "agent"); err != nil {
		return err
	}
	call := func(command string) modelserver.ToolCall {
		return modelserver.ToolCall{Name: "execute", Arguments: json.RawMessage(fmt.Sprintf(`{"command":%q}`, command))}
	}
	for i, turn := range []struct {
		calls []modelserver.ToolCall
		into  *float64
	}{
		{[]modelserver.ToolCall{call("true")}, &a.Idle},
		{slices.Repeat([]modelserver.ToolCall{call("sleep 600 &")}, commands), &a.Busy},
	} {
		if err := b.script(ctx, answerWithCalls(turn.calls...)); err != nil {
			return err
		}
		if err := b.say(ctx, "agent", fmt.Sprintf("agent-%d", i)); err != nil {
			return err
		}
		if err := b.follow.answered(ctx, "agent", int64(4*i+4)); err != nil {
			return err
		}
		var err error
		if *turn.into, err = b.agentMemory(ctx, "agent", i*commands); err != nil {
			return err
		}
	}
	return nil
}

// resident prints how many commands run, and then the agent's resident memory in KiB.
const resident = `grep -l '^sleep' /proc/[0-9]*/cmdline 2>/dev/null | wc -l
grep VmRSS /proc/1/status | tr -dc '0-9\n'`

// agentMemory is the memory of the agent in a chat's workspace, in MiB, beside so many commands.
func (b *bench) agentMemory(ctx context.Context, chat string, beside int) (float64, error) {
	var w v1beta1.Workspace
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: chat}, &w); err != nil {
		return 0, fmt.Errorf("reading workspace %s: %w", chat, err)
	}
	if w.Status.Pod == nil {
		return 0, fmt.Errorf("workspace %s has no pod", chat)
	}
	out, err := b.exec(ctx, w.Status.Pod.Name, resident)
	if err != nil {
		return 0, err
	}
	var numbers []int
	for field := range strings.FieldsSeq(out) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, fmt.Errorf("reading the memory of the agent from %q: %w", out, err)
		}
		numbers = append(numbers, n)
	}
	if len(numbers) != 2 || numbers[0] != beside {
		return 0, fmt.Errorf("the agent and %d commands should run, the script printed %q", beside, out)
	}
	return float64(numbers[1]) / (1 << 10), nil
}

// exec runs a script in the container of a workspace.
func (b *bench) exec(ctx context.Context, pod, script string) (string, error) {
	url := b.core.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: v1beta1.WorkspaceContainer,
			Command: []string{"/bin/sh", "-c", script}, Stdout: true}, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewWebSocketExecutor(b.config, "GET", url.String())
	if err != nil {
		return "", fmt.Errorf("preparing to run a script in pod %s: %w", pod, err)
	}
	var out bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out}); err != nil {
		return "", fmt.Errorf("running a script in pod %s: %w", pod, err)
	}
	return out.String(), nil
}
