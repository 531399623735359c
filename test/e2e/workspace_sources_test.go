// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"
	pools "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/agentsandbox"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
)

func TestChatUsesExternallyManagedPodAsWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works(run("echo mine >notes; echo $HOME"), run("cat notes")))
	chat := w.sample("workspace-pod.yaml")[0]
	w.create(chat)
	w.ready("machinist", 6)
	for i, want := range []string{"/workspace\n", "mine\n"} {
		if got := w.executed(w.results("machinist")[i]); got.Output != want {
			t.Errorf("command %d says %+v", i, got)
		}
	}
	if ws := w.workspace("machinist"); ws.Status.Pod.Name != "machine" {
		t.Errorf("the workspace is %+v", ws.Status)
	}

	// It belongs to that chat for ever.
	w.script(works(run("cat notes")))
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("second"), Spec: v1beta1.ChatSpec{Prompt: "Read the notes.",
		Workspace: &v1beta1.WorkspaceSource{PodRef: &v1beta1.WorkspacePodReference{Name: "machine"}}}})
	w.ready("second", 4)
	if got := w.results("second")[0]; !got.IsError || !strings.Contains(got.Output, "PodInUse") {
		t.Errorf("another chat reads %+v", got)
	}

	check.OK(t, c.Delete(t.Context(), chat))
	its := &v1beta1.Workspace{ObjectMeta: w.meta("machinist")}
	w.eventually("its workspace is gone", func() bool { return w.gone(its) })
	if pod := w.housing(); pod == nil || !pod.DeletionTimestamp.IsZero() {
		t.Errorf("the pod went with the chat: %+v", pod)
	}
	w.eventually("the workspace of the other chat says that the pod is to be recreated", func() bool {
		ready := meta.FindStatusCondition(w.workspace("second").Status.Conditions, v1beta1.ConditionReady)
		return ready.Reason == "PodInUse" && strings.Contains(ready.Message, "was the workspace of another chat")
	})

	// A chat that comes when both are gone finds out by its calls alone.
	second := w.workspace("second")
	check.OK(t, c.Delete(t.Context(), &v1beta1.Chat{ObjectMeta: w.meta("second")}))
	w.eventually("the workspace of the other chat is gone", func() bool { return w.gone(second) })
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("third"), Spec: v1beta1.ChatSpec{Prompt: "Read the notes.",
		Workspace: &v1beta1.WorkspaceSource{PodRef: &v1beta1.WorkspacePodReference{Name: "machine"}}}})
	w.ready("third", 4)
	if got := w.results("third")[0]; !got.IsError || !strings.Contains(got.Output, "BoundToAnother") {
		t.Errorf("a third chat reads %+v", got)
	}
}

// withAgentSandbox has agent-sandbox in the cluster during the test.
func withAgentSandbox(t *testing.T) {
	t.Helper()
	localnode.Needed(t) // It is installed in the whole cluster.
	cfg, err := ctrl.GetConfig()
	check.OK(t, err)
	check.OK(t, agentsandbox.Install(t.Context(), cfg))
	t.Cleanup(func() { _ = agentsandbox.Uninstall(context.Background(), cfg) })
	ctx, stop := context.WithCancel(context.Background())
	log := filepath.Join(t.TempDir(), "agent-sandbox.log")
	wait, err := agentsandbox.Start(ctx, filepath.Join(bin, "agent-sandbox-controller"), os.Getenv("KUBECONFIG"), log)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		wait()
		if raw, err := os.ReadFile(log); t.Failed() && err == nil {
			t.Logf("agent-sandbox says\n%s", raw)
		}
	})
}

func TestChatUsesSandboxFromWarmPool(t *testing.T) {
	w := newWorld(t, works(run("echo begun >>notes; cat notes")))
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("early"), Spec: v1beta1.ChatSpec{Prompt: "Work.",
		Workspace: &v1beta1.WorkspaceSource{WarmPoolRef: &v1beta1.WarmPoolReference{Name: "shells"}}}})
	w.ready("early", 4)
	if got := w.results("early")[0]; !got.IsError || !strings.Contains(got.Output, "install it") {
		t.Errorf("without agent-sandbox the model reads %+v", got)
	}
	early := w.workspace("early")
	check.OK(t, c.Delete(t.Context(), &v1beta1.Chat{ObjectMeta: w.meta("early")}))
	w.eventually("the workspace of that chat is gone", func() bool { return w.gone(early) })

	withAgentSandbox(t)
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("astray"), Spec: v1beta1.ChatSpec{Prompt: "Work.",
		Workspace: &v1beta1.WorkspaceSource{WarmPoolRef: &v1beta1.WarmPoolReference{Name: "none"}}}})
	w.eventually("the workspace says that it waits for its pool", func() bool {
		var ws v1beta1.Workspace
		if c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "astray"}, &ws) != nil {
			return false
		}
		ready := meta.FindStatusCondition(ws.Status.Conditions, v1beta1.ConditionReady)
		return ready != nil && strings.Contains(ready.Message, "WarmPoolNotFound")
	})
	chat := w.sample("agent-sandbox", "workspace-warmpool.yaml")[0]
	var pool pools.SandboxWarmPool
	w.eventually("a pod of the pool is ready", func() bool {
		return c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "shells"}, &pool) == nil &&
			pool.Status.ReadyReplicas == 1
	})
	warm := w.housing()

	// It is suspended when nobody needs it, and finds its files when somebody does.
	check.OK(t, unstructured.SetNestedField(chat.Object, int64(3), "spec", "workspace", "idleSeconds"))
	w.create(chat)
	began := time.Now()
	w.ready("quick", 4)
	t.Logf("the turn with a sandbox that was ready took %s", time.Since(began).Round(time.Millisecond))
	if got := w.executed(w.results("quick")[0]); got.Output != "begun\n" {
		t.Errorf("the command says %+v", got)
	}
	ws := w.workspace("quick")
	sandbox := &sandboxes.Sandbox{ObjectMeta: w.meta(ws.Status.Sandbox)}
	check.OK(t, c.Get(t.Context(), client.ObjectKeyFromObject(sandbox), sandbox))
	if launch := sandbox.Labels[sandboxes.SandboxLaunchTypeLabel]; launch != sandboxes.SandboxLaunchTypeWarm {
		t.Errorf("the sandbox was started %q", launch)
	}
	w.eventually("it is suspended and has no pod", func() bool {
		ws = w.workspace("quick")
		return ws.Status.Phase == v1beta1.WorkspacePhaseStopped && ws.Status.Pod == nil && w.gone(warm.DeepCopy())
	})
	w.script(works(run("echo again >>notes; cat notes")))
	w.say("quick", "again", "Go on.")
	w.ready("quick", 8)
	if got := w.executed(w.results("quick")[1]); got.Output != "begun\nagain\n" {
		t.Errorf("the command says %+v", got)
	}

	check.OK(t, c.Delete(t.Context(), chat))
	w.eventually("its sandbox is gone, and the pool's own stays", func() bool {
		var left corev1.PodList
		return w.gone(sandbox.DeepCopy()) && c.List(t.Context(), &left, client.InNamespace(w.ns),
			client.MatchingLabels{"parley.dev/component": "workspace"}) == nil && len(left.Items) == 1
	})
}
