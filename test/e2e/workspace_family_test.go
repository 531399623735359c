// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
)

// uptime reads how long the pod's node has been up.
func (w *world) uptime(pod, command string) time.Duration {
	w.t.Helper()
	out, err := w.exec(pod, "tools", command)
	if err != nil {
		w.t.Fatalf("%s: %v", command, err)
	}
	seconds, _, _ := strings.Cut(out, " ")
	up, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		w.t.Fatalf("%s says %q", command, out)
	}
	return time.Duration(up * float64(time.Second))
}

func TestDeletedSubChatCancelsOnlyItsOwnCommand(t *testing.T) {
	const background = "while true; do sleep 1; done"
	w := newWorld(t, works(run(background+" &"),
		run("trap 'cat /proc/uptime >ended; exit 4' TERM; echo yes >begun; while true; do sleep 0.01; done")))
	w.template("shell")
	w.create(&v1alpha1.Chat{ObjectMeta: w.meta("root"), Spec: v1alpha1.ChatSpec{Workspace: &v1alpha1.WorkspaceSource{
		PodTemplateRef: &v1alpha1.WorkspaceTemplateReference{Name: "shell"}}}})
	sub := &v1alpha1.Chat{ObjectMeta: w.meta("sub"), Spec: v1alpha1.ChatSpec{
		Prompt: "Work.", ParentRef: &v1alpha1.ChatReference{Name: "root"}}}
	w.create(sub)
	pod := w.has("begun", "yes\n")

	deleted := w.uptime(pod.Name, "cat /proc/uptime")
	check.OK(t, c.Delete(t.Context(), sub))
	w.eventually("the command that the sub-chat waits for has ended", func() bool {
		out, err := w.exec(pod.Name, "tools", "cat /workspace/ended")
		return err == nil && strings.HasSuffix(out, "\n")
	})
	if took := w.uptime(pod.Name, "cat /workspace/ended") - deleted; took > time.Second {
		t.Errorf("the command was told to end %s after the sub-chat was deleted", took)
	}

	w.script(works(callOf("process_list", map[string]any{})))
	w.say("root", "look", "What runs?")
	w.ready("root", 4)
	var list struct {
		Processes []struct {
			Command  string `json:"command"`
			State    string `json:"state"`
			ExitCode *int   `json:"exit_code"`
		} `json:"processes"`
	}
	check.OK(t, json.Unmarshal([]byte(w.results("root")[0].Output), &list))
	state := map[string]string{}
	for _, p := range list.Processes {
		state[p.Command] = p.State
		if strings.HasPrefix(p.Command, "trap") && (p.ExitCode == nil || *p.ExitCode != 4) {
			t.Errorf("the command that was waited for is %+v", p)
		}
	}
	if len(list.Processes) != 3 || state[background] != "running" { // The third is what the template runs.
		t.Errorf("the chat at the top is told %+v", list.Processes)
	}
}
