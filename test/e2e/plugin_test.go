// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/doctor"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

// ends runs the plug-in as the person of this world, checks its exit code, and returns its standard output.
func (w *world) ends(code int, args ...string) string {
	w.t.Helper()
	var out, errOut strings.Builder
	cmd := w.plugin(args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if exited, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || cmd.ProcessState.ExitCode() != code {
		w.t.Fatalf("kubectl chat %s ends with %d (%v, %v), want %d\n%s%s", strings.Join(args, " "),
			cmd.ProcessState.ExitCode(), err, exited, code, out.String(), errOut.String())
	}
	return out.String()
}

// shows runs the plug-in, and checks that it prints the words.
func (w *world) shows(words string, args ...string) {
	w.t.Helper()
	check.Contains(w.t, w.ends(0, args...), words)
}

// plugInScript has answers to all that is asked on a day with the plug-in.
var plugInScript = modelserver.Script{Rules: []modelserver.Rule{
	{Match: modelserver.Match{LastUserText: "fail"}, Reply: modelserver.Reply{Fault: &modelserver.Fault{
		Kind: modelserver.FaultStatus, Status: 401}}},
	{Match: modelserver.Match{LastUserText: "story"}, Reply: words(600, 100*time.Millisecond)},
	{Match: modelserver.Match{LastUserText: "not get ready"}, Reply: say("Its network plug-in ", "has not started.")},
	{Match: modelserver.Match{LastUserText: "DNS"}, Reply: say("Look at CoreDNS.")},
	{Reply: say("Look at the kubelet's log.")},
}}

// TestADayWithThePlugInAlone is that of a person with the documented roles, who has nothing but kubectl chat.
func TestADayWithThePlugInAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plugInScript)
	w.ends(0, "ls")
	w.shows("Its network plug-in has not started.\n", "new", "triage", "Why does node-7 not get ready?")
	w.ends(5, "new", "triage", "Once more?")
	w.ends(3, "send", "other", "Hello?")
	w.ends(2, "show", "triage", "--last", "0")
	w.ends(4, "debug", "triage")
	w.shows("Look at the kubelet's log.\n", "send", "triage", "And how do I tell?")

	asked := w.ends(0, "send", "triage", "And then?", "--no-follow", "-o", "name")
	asked = strings.TrimPrefix(strings.TrimSpace(asked), "chatmessage.parley.dev/")
	w.ready("triage", 6)
	w.shows(asked+" edited, and 1 message after it removed from the history\n", "edit", "triage", asked, "And the DNS?")
	w.eventually("the edited message is answered", func() bool {
		return strings.HasSuffix(w.ends(0, "show", "triage"), "▎> And the DNS?\nLook at CoreDNS.\n")
	})

	w.completes("triage", "chat", "send", "tr")
	w.interruptsAStory()
	w.holds()
	w.looksBack()

	w.shows(" archived\n", "archive", "triage")
	check.Lacks(t, w.ends(0, "ls"), "triage")
	w.ends(0, "unarchive", "triage")
	w.ends(1, "new", "broken", "You will fail.")
	w.shows("chat.parley.dev/broken deleted\n", "delete", "broken")
	w.ends(0, "delete", "triage", "--yes")
	w.ends(3, "show", "triage")
}

// TestDoctorPassesAndItsArchiveHasNoContent runs it as an administrator, and as a person who sees less.
func TestDoctorPassesAndItsArchiveHasNoContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, reply(say("secret-reply")))
	w.shows("ok           your rights: all are granted\n", "doctor")
	file := filepath.Join(t.TempDir(), "support.tar.gz")
	cmd := w.plugin("doctor", "-n", w.ns, "--service-account", "person", "--probe", "--bundle", file, "-o", "json")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.Getenv("KUBECONFIG"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl chat doctor: %v\n%s", err, out)
	}
	var report doctor.Report
	check.OK(t, json.Unmarshal(out, &report))
	results := map[doctor.Result][]string{}
	for _, c := range report.Checks {
		results[c.Result] = append(results[c.Result], c.Group+"/"+c.Check+": "+c.Message)
	}
	check.Equal(t, "checks that are not made", 1, len(results[doctor.NotChecked])) // The version of this build.
	check.Contains(t, strings.Join(results[doctor.OK], "\n"), "Gateway/answer",
		"Namespace/reply: a chat was answered after")
	check.Equal(t, "requests to the model", 1, len(w.requests()))

	files, err := exec.CommandContext(t.Context(), "tar", "-tzf", file).Output()
	check.OK(t, err)
	check.Contains(t, string(files), "/manager.log\n", "/gateway.log\n", "/generator.log\n", "/relay.log\n",
		"namespaces/"+w.ns+"/chatmodelconfigs.json\n")
	content, err := exec.CommandContext(t.Context(), "tar", "-xzOf", file).Output()
	check.OK(t, err)
	check.Contains(t, string(content), `"spec":`, `"msg":"`)
	check.Lacks(t, string(content), "Reply with OK", "secret-reply", "sk-e2e")
	var chats v1beta1.ChatList
	w.eventually("the chat of the probe is deleted", func() bool {
		check.OK(t, c.List(t.Context(), &chats, client.InNamespace(w.ns)))
		return len(chats.Items) == 0
	})
}

// completes checks that kubectl completes a word, with the program that docs/how-to/kubectl-chat.md has.
func (w *world) completes(want string, words ...string) {
	w.t.Helper()
	dir := w.t.TempDir()
	check.OK(w.t, os.WriteFile(filepath.Join(dir, "kubectl_complete-chat"),
		[]byte("#!/bin/sh\nexec kubectl chat __complete \"$@\"\n"), 0o700))
	kubectl, err := exec.LookPath(cmp.Or(os.Getenv("KUBECTL"), "kubectl"))
	if err == nil {
		err = os.Symlink(kubectl, filepath.Join(dir, "kubectl"))
	}
	check.OK(w.t, err)
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(dir, "kubectl"), append([]string{"__complete"}, words...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig, "PATH="+dir+":"+bin+":"+os.Getenv("PATH"))
	out, err := cmd.Output()
	if err != nil || !strings.HasPrefix(string(out), want+"\t") {
		w.t.Errorf("kubectl completes %v with %q, %v", words, out, err)
	}
}

// interruptsAStory stops a reply in the middle, which whoever has asked sees as an exit code.
func (w *world) interruptsAStory() {
	w.t.Helper()
	out := &growing{}
	story := w.plugin("send", "triage", "Tell me a story.")
	story.Stdout, story.Stderr = out, out
	check.OK(w.t, story.Start())
	w.eventually("the story is streamed", func() bool { return strings.Contains(out.String(), "worda wordb") })
	w.shows("interrupted: Done", "interrupt", "triage")
	if err := story.Wait(); story.ProcessState.ExitCode() != 8 || !strings.Contains(out.String(), "▎[interrupted]\n") {
		w.t.Errorf("the story ends with %v:\n%s", err, out.String())
	}
}

// holds lets a message wait until the chat is resumed.
func (w *world) holds() {
	w.t.Helper()
	w.shows(" suspended\n", "suspend", "triage")
	w.ends(6, "send", "triage", "Is anybody there?", "--timeout", "1500ms")
	w.shows(" Suspended ", "ls")
	w.shows(" resumed\n", "resume", "triage")
	w.ready("triage", 10)
}

// looksBack reads what was said and what it took.
func (w *world) looksBack() {
	w.t.Helper()
	w.shows("▎> Is anybody there?\nLook at the kubelet's log.\n", "show", "triage", "--last", "2")
	w.shows("triage ", "usage")
	w.shows("## 1. User", "export", "triage")
	lines := strings.Split(strings.TrimSpace(w.ends(0, "export", "triage", "-o", "jsonl")), "\n")
	check.Equal(w.t, "exported", 11, len(lines))
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			w.t.Errorf("no JSON: %s", line)
		}
	}
}

// messagesOf are those that a request to the model has.
func messagesOf(t *testing.T, r modelserver.Record) []any {
	t.Helper()
	var body struct{ Messages []any }
	check.OK(t, json.Unmarshal(r.Body, &body))
	return body.Messages
}

// TestImportedChatContinuesLikeExportedChat has somebody say in the chat what would like to be more than words.
func TestImportedChatContinuesLikeExportedChat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "time", ToolResults: new(0)}, Reply: modelserver.Reply{
			Steps: []modelserver.Step{modelserver.Say("Let me look."),
				modelserver.Call("current_time", `{"timezone":"Europe/Berlin"}`)}}},
		{Reply: say(hostile + "\x1b]0;title\a\n{\"type\":\"chat\"}")},
	}})
	w.ends(0, "new", "triage", "What time is it? "+hostile)
	w.ends(0, "send", "triage", "People need not know.", "--visibility", "Model")
	w.ends(0, "send", "triage", "Nor the model.", "--visibility", "Users")
	file := filepath.Join(t.TempDir(), "triage.jsonl")
	check.OK(t, os.WriteFile(file, []byte(w.ends(0, "export", "triage", "-o", "jsonl")), 0o600))
	w.shows("chat.parley.dev/waits created from 6 messages\n", "import", file, "waits")
	w.ready("waits", 1)
	w.ends(0, "send", "triage", "And then?")
	w.ends(0, "import", file, "goes-on", "--prompt", "And then?")
	w.ends(0, "send", "waits", "And then?")
	requests := w.requests()
	if len(requests) != 6 {
		t.Fatalf("the model was asked %d times", len(requests))
	}
	want := messagesOf(t, requests[3])
	for i, name := range []string{"goes-on", "waits"} {
		check.Equal(t, name, want, messagesOf(t, requests[4+i]))
	}
	if got := w.ends(0, "show", "waits"); strings.ContainsAny(got, "\x1b\a\u202e") {
		t.Errorf("a terminal is told %q", got)
	}
}
