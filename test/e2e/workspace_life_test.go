// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/modelserver"
)

// newStoredChat creates a chat whose workspace has storage, and the template that it is made from.
func (w *world) newStoredChat(name string, change func(*v1beta1.WorkspaceSource)) *v1beta1.Chat {
	w.t.Helper()
	w.template("shell")
	source := &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{
		Name: "shell", Storage: &v1beta1.WorkspaceStorage{Size: "64Mi"}}}
	change(source)
	chat := &v1beta1.Chat{ObjectMeta: w.meta(name), Spec: v1beta1.ChatSpec{Prompt: "Work.", Workspace: source}}
	w.create(chat)
	return chat
}

func asItIs(*v1beta1.WorkspaceSource) {}

// housing is the pod of the namespace's one workspace; nil while there is none.
func (w *world) housing() *corev1.Pod {
	w.t.Helper()
	var pods corev1.PodList
	check.OK(w.t, c.List(w.t.Context(), &pods, client.InNamespace(w.ns),
		client.MatchingLabels{"parley.dev/component": "workspace"}))
	if len(pods.Items) == 0 {
		return nil
	}
	return &pods.Items[0]
}

// storage is the claim of the workspace, which is bound, and its volume.
func (w *world) storage(workspace string) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	w.t.Helper()
	claim, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	key := client.ObjectKey{Namespace: w.ns, Name: w.workspace(workspace).Status.Claim}
	check.OK(w.t, c.Get(w.t.Context(), key, claim))
	check.OK(w.t, c.Get(w.t.Context(), client.ObjectKey{Name: claim.Spec.VolumeName}, volume))
	check.Equal(w.t, "the claim", corev1.ClaimBound, claim.Status.Phase)
	return claim, volume
}

func (w *world) gone(o client.Object) bool {
	return apierrors.IsNotFound(c.Get(w.t.Context(), client.ObjectKeyFromObject(o), o))
}

// has waits until a file of the workspace has this content, and returns the pod in which it has.
func (w *world) has(file, content string) *corev1.Pod {
	w.t.Helper()
	var pod *corev1.Pod
	w.eventually(fmt.Sprintf("%s says %q", file, content), func() bool {
		if pod = w.housing(); pod == nil {
			return false
		}
		got, err := w.exec(pod.Name, "tools", "cat /workspace/"+file)
		return err == nil && got == content
	})
	return pod
}

// executed is what a model reads of a call of execute.
type executed struct {
	Success  bool   `json:"success"`
	Output   string `json:"output"`
	ExitCode *int   `json:"exit_code"`
	Signal   string `json:"signal"`
	Error    string `json:"error"`
	Note     string `json:"note"`
}

func (w *world) executed(r v1beta1.ToolResult) (e executed) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(r.Output), &e); err != nil {
		w.t.Errorf("the result %q is none of a command: %v", r.Output, err)
	}
	return e
}

func run(command string) modelserver.ToolCall {
	return callOf("execute", map[string]any{"command": command, "timeout": 80})
}

func TestIdleWorkspaceStopsAndNextCallFindsFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works(callOf("write_file", map[string]any{"path": "notes/one.txt", "content": "remember me\n"})))
	chat := w.newStoredChat("c", func(s *v1beta1.WorkspaceSource) { s.IdleSeconds = new(int32(3)) })
	w.ready("c", 4)
	claim, volume := w.storage("c")
	w.eventually("the workspace is stopped and its pod gone", func() bool {
		ws := w.workspace("c")
		return ws.Status.Phase == v1beta1.WorkspacePhaseStopped && ws.Status.Pod == nil && w.housing() == nil
	})

	w.script(works(callOf("read_file", map[string]any{"path": "notes/one.txt"})))
	w.say("c", "again", "What did you note?")
	w.ready("c", 8)
	if got := w.results("c")[1]; got.IsError || !strings.Contains(got.Output, "remember me") {
		t.Errorf("the file is %+v", got)
	}
	if again, _ := w.storage("c"); again.UID != claim.UID {
		t.Errorf("its claim is another one: %s", again.UID)
	}

	check.OK(t, c.Delete(t.Context(), chat))
	w.eventually("its claim and its volume are gone", func() bool { return w.gone(claim) && w.gone(volume) })
}

func TestRetainedStorageOutlivesChat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works(callOf("write_file", map[string]any{"path": "kept.txt", "content": "kept"})))
	chat := w.newStoredChat("c", func(s *v1beta1.WorkspaceSource) { s.DeletionPolicy = v1beta1.WorkspaceRetain })
	w.ready("c", 4)
	claim, volume := w.storage("c")
	check.OK(t, c.Delete(t.Context(), chat))
	ws := &v1beta1.Workspace{ObjectMeta: w.meta("c")}
	w.eventually("its workspace and the pod are gone", func() bool { return w.gone(ws) && w.housing() == nil })
	if w.gone(claim) || !claim.DeletionTimestamp.IsZero() || w.gone(volume) || volume.Status.Phase != corev1.VolumeBound {
		t.Errorf("the claim is %+v, its volume %+v", claim, volume.Status)
	}
}

// lives writes "one" and then appends to the log. After a while it does so again.
const lives = "echo one; echo begun >>log; sleep 60; echo two; echo ended >>log"

// removed deletes a workspace's pod in this time.
func removed(grace ...client.DeleteOption) func(*testing.T, *corev1.Pod) {
	return func(t *testing.T, pod *corev1.Pod) {
		t.Helper()
		check.OK(t, c.Delete(t.Context(), pod, grace...))
	}
}

func TestACommandWhoseWorkspaceIsLostEndsOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		command string
		lose    func(*testing.T, *corev1.Pod)
		// says is what the model reads, and output with it.
		says, output string
	}{
		"its pod is removed by force": {lives, removed(client.GracePeriodSeconds(0)), "the command was ended by SIGTERM",
			"one\n"},
		"its pod is removed, and it does not heed that": {"trap '' TERM; " + lives, removed(),
			"the command was ended by SIGKILL", "one\n"},
		"its container is killed": {lives, func(t *testing.T, pod *corev1.Pod) {
			t.Helper()
			localnode.Needed(t)
			kill(t, pod.Namespace, pod.Name, "tools")
		}, "the workspace was restarted while the command ran, which ended it", "one\n"},
		"its pod is lost": {lives, func(t *testing.T, pod *corev1.Pod) {
			t.Helper()
			localnode.Needed(t)
			signalTo(t, syscall.SIGSTOP, pod.Namespace, pod.Name, "tools") // SIGTERM does not reach it.
			removed(client.GracePeriodSeconds(0))(t, pod)
		}, "the workspace's pod was lost while the command ran, and what became of it is not known", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, works(run(tc.command), run("cat log"), callOf("process_list", map[string]any{})))
			w.newStoredChat("c", asItIs)
			w.has("log", "begun\n")
			// p1 is the main process of the template. SIGKILL loses what the agent has not stored yet.
			tc.lose(t, w.has(".."+protocol.StateDir+"/processes/p2/output.0", "one\n"))
			w.eventually("the model reads what became of it", func() bool { return len(w.results("c")) > 0 })
			w.ready("c", 8)
			results := w.results("c")
			if lost := w.executed(results[0]); lost.Success || lost.Error != tc.says || lost.Output != tc.output {
				t.Errorf("of the lost command the model read %s", results[0].Output)
			}
			if log := w.executed(results[1]); log.Output != "begun\n" {
				t.Errorf("the log says %q: %+v", log.Output, log)
			}
			check.Equal(t, "the workspace remembers", 1, strings.Count(results[2].Output, "sleep 60"))
		})
	}
}

func TestCommandSurvivesSignalsToItsAgent(t *testing.T) {
	t.Parallel()
	// It waits to be told, and then writes more than its pipe holds.
	w := newWorld(t, works(
		run("echo before; touch begun; until [ -e go ]; do sleep 0.1; done; seq 1 20000; echo after; exit 7"),
		callOf("process_list", map[string]any{})))
	w.newStoredChat("c", asItIs)
	pod := w.has("begun", "")
	if out, err := w.exec(pod.Name, "tools",
		"for s in HUP INT QUIT ABRT KILL SEGV TERM; do kill -$s 1; done; touch /workspace/go"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.ready("c", 6)
	got := w.executed(w.results("c")[0])
	if got.ExitCode == nil || *got.ExitCode != 7 || got.Error != "" || !strings.HasPrefix(got.Output, "before\n1\n2\n") ||
		!strings.HasSuffix(got.Output, "\n19999\n20000\nafter\n") {
		t.Errorf("the command ended with %+v", got)
	}
	const written = len("before\n") + 108894 + len("after\n") // seq writes the rest.
	check.Contains(t, w.results("c")[1].Output, fmt.Sprintf(`"output_bytes":%d`, written))
	if now := w.housing(); now.UID != pod.UID || restarted(now) {
		t.Errorf("the pod is another, or was restarted: %+v", now.Status.ContainerStatuses)
	}
}

func TestCommandSurvivesGenerationPodAndRunsOnce(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, ns, pod string){
		"its pod is removed by force": func(t *testing.T, ns, pod string) {
			lost := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: pod}}
			check.OK(t, c.Delete(t.Context(), lost, client.GracePeriodSeconds(0)))
		},
		"its generator is killed": func(t *testing.T, ns, pod string) {
			localnode.Needed(t)
			kill(t, ns, pod, "generator")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, works(
				run("echo begun >>log; echo one; until [ -e go ]; do sleep 0.1; done; echo ended >>log; echo two; exit 3"),
				run("cat log")))
			w.newStoredChat("c", asItIs)
			pod := w.has("log", "begun\n")
			first := w.chat("c").Status.Generation
			lose(t, w.ns, first.Pod)
			w.eventually("another attempt has begun", func() bool {
				now := w.chat("c").Status.Generation
				return now != nil && now.Attempt > first.Attempt
			})
			if _, err := w.exec(pod.Name, "tools", "touch /workspace/go"); err != nil {
				t.Fatal(err)
			}
			w.ready("c", 6)
			results := w.results("c")
			if got := w.executed(results[0]); got.ExitCode == nil || *got.ExitCode != 3 || got.Output != "one\ntwo\n" {
				t.Errorf("the command ended with %s", results[0].Output)
			}
			if log := w.executed(results[1]); log.Output != "begun\nended\n" {
				t.Errorf("the log says %q", log.Output)
			}
		})
	}
}

func TestForkWorkspaceHasFilesOfItsSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works(callOf("write_file", map[string]any{"path": "notes/one.txt", "content": "remember me\n"}),
		run("touch -d '2020-01-02 03:04:05' notes/one.txt && ln -s notes/one.txt link && ln notes/one.txt hard && "+
			"mkfifo pipe && chmod 600 hard")))
	chat := w.newStoredChat("c", asItIs)
	w.ready("c", 6)
	claim, volume := w.storage("c")

	// The source still runs: its volume is mounted twice.
	w.script(works(run("cat link && stat -c '%Y %h' notes/one.txt && ls && echo changed > link")))
	w.template("other", func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.RunAsUser = new(int64(65533)) })
	other := chat.Spec.Workspace.DeepCopy()
	other.PodTemplateRef.Name = "other"
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("f"), Spec: v1beta1.ChatSpec{Prompt: "Continue.",
		Workspace: other, Fork: &v1beta1.ForkSource{Chat: "c", Message: w.chat("c").Status.History.Head,
			Workspace: v1beta1.ForkWorkspaceCopy}}})
	w.eventually("another user cannot read the files", func() bool {
		wait := w.chat("f").Status.Wait
		return wait != nil && strings.Contains(wait.Message, "permission denied")
	})
	fork := w.chat("f")
	wrong := client.MergeFrom(fork.DeepCopy())
	fork.Spec.Workspace = chat.Spec.Workspace
	check.OK(t, c.Patch(t.Context(), fork, wrong))
	w.ready("f", 10)
	check.Equal(t, "files of the fork", "remember me\n1577934245 2\nhard\nlink\nnotes\n",
		w.executed(w.results("f")[2]).Output)
	kept, err := w.exec(w.workspace("c").Status.Pod.Name, "tools", "cat /workspace/link")
	check.OK(t, err)
	check.Equal(t, "file of the source", "remember me\n", kept)

	check.OK(t, c.Delete(t.Context(), chat))
	w.eventually("the fork does not keep the source's storage", func() bool { return w.gone(claim) && w.gone(volume) })
	w.has("link", "changed\n")
}
