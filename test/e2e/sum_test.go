// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"maps"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/modelserver"
)

var toolchain = cmp.Or(os.Getenv("TOOLCHAIN_IMAGE"), "parley.dev/toolchain:dev")

// The program that the model writes, with a fault in it, and its test. It speaks HTTP by hand: net/http takes long to
// compile.
const (
	sumModule = "module example.com/sum\n\ngo 1.26\n"
	sumMain   = `package main

import (
	"bufio"
	"fmt"
	"log"
	"net"
)

func Sum(numbers ...int) (total int) {
	for n := range numbers {
		total += n
	}
	return total
}

func main() {
	log.SetFlags(0)
	listener, err := net.Listen("tcp", "127.0.0.1:8090")
	if err != nil {
		log.Fatal(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		request := bufio.NewScanner(conn)
		for n := 0; request.Scan() && request.Text() != ""; n++ {
			if n == 0 {
				log.Print("asked: ", request.Text())
			}
		}
		fmt.Fprintf(conn, "HTTP/1.0 200 OK\r\n\r\nthe sum is %d\n", Sum(1, 2, 3))
		conn.Close()
	}
}
`
	sumTest = `package main

import "testing"

func TestSum(t *testing.T) {
	if got := Sum(1, 2, 3); got != 6 {
		t.Errorf("the sum is %d, want 6", got)
	}
}
`
	sumPrompt       = "Write a server that sums."
	sumInstructions = "Test before you say that it works.\n"
)

// batch are the calls of one reply.
type batch []modelserver.ToolCall

// noted is a call of execute whose command notes in a file that it was begun.
func noted(what, command string, more map[string]any) modelserver.ToolCall {
	arguments := map[string]any{"command": "echo " + what + " >>begun; " + command, "timeout": 300}
	maps.Copy(arguments, more)
	return callOf("execute", arguments)
}

const goTest = "go test -count=1 ./..."

// sumBatches are what the model does: from the choice of a template to its return to a workspace that it has stopped.
// The first four make the workspace and read what it says.
func sumBatches() []batch {
	write := func(path, content string) modelserver.ToolCall {
		return callOf("write_file", map[string]any{"path": path, "content": content})
	}
	bare := func(name string) batch { return batch{callOf(name, map[string]any{})} }
	return []batch{
		bare("list_templates"),
		{callOf("create_workspace", map[string]any{"template": "go"})},
		{write("AGENTS.md", sumInstructions)},
		{write("go.mod", sumModule), write("main.go", sumMain), write("main_test.go", sumTest)},
		{noted("test", goTest, nil)},
		{callOf("edit_files", map[string]any{"edits": []map[string]any{
			{"path": "main.go", "old_text": "for n := range numbers", "new_text": "for _, n := range numbers"}}})},
		{noted("test-again", goTest, nil)},
		{noted("serve", "go build -o server . && exec ./server 2>server.log", map[string]any{"run_in_background": true})},
		{noted("ask", "until wget -qO- http://127.0.0.1:8090/sum 2>/dev/null; do sleep 1; done", nil)},
		{callOf("read_file", map[string]any{"path": "server.log"})},
		bare("process_list"),
		bare("stop_workspace"),
		bare("process_list"),
		{noted("come-back", "ls; "+goTest+"; cat begun", nil)},
	}
}

// asking is how many batches there are before the model is told what the workspace says: from then on that is the last
// that a user has said, and results are counted from there.
const asking = 3

// sums is a model that makes the calls of sumBatches. Which reply is due follows from the conversation alone, so that a
// call of the model may be made again.
func sums() modelserver.Script {
	var script modelserver.Script
	said, results := sumPrompt, 0
	for i, calls := range sumBatches() {
		if i == asking {
			said, results = sumInstructions, 0
		}
		script.Rules = append(script.Rules, modelserver.Rule{
			Match: modelserver.Match{LastUserText: said, ToolResults: new(results)},
			Reply: modelserver.Reply{Steps: []modelserver.Step{{ToolCalls: calls}}}})
		results += len(calls)
	}
	script.Rules = append(script.Rules, modelserver.Rule{
		Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("It sums.")}}})
	return script
}

// sumLength is how many messages the conversation has: the question, a reply and results for each batch, the answer.
var sumLength = int64(2*len(sumBatches()) + 2)

// newSumChat creates the chat, in a world whose model sums.
func (w *world) newSumChat(name string) {
	w.t.Helper()
	w.goTemplate()
	w.create(&v1beta1.Chat{ObjectMeta: w.meta(name), Spec: v1beta1.ChatSpec{Prompt: sumPrompt,
		Workspace: &v1beta1.WorkspaceSource{PodTemplateSelector: &v1beta1.WorkspaceTemplateSelector{
			Storage: &v1beta1.WorkspaceStorage{Size: "1Gi"}}}}})
}

// goTemplate is a template with a Go toolchain, which fetches nothing, and has compiled most of what it needs before.
func (w *world) goTemplate() {
	w.t.Helper()
	tmp := []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}}
	w.create(&corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "go",
			Labels:      map[string]string{v1beta1.LabelWorkspaceTemplate: "true"},
			Annotations: map[string]string{v1beta1.AnnotationDescription: "A Go toolchain."}},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "cache", Image: toolchain, VolumeMounts: tmp,
				Command: []string{"/bin/sh", "-c", "cp -r /usr/local/go-cache /tmp/go-cache"}}},
			Containers: []corev1.Container{{Name: v1beta1.WorkspaceContainer, Image: toolchain, VolumeMounts: tmp,
				Env: []corev1.EnvVar{
					{Name: "CGO_ENABLED", Value: "0"}, {Name: "GOPROXY", Value: "off"}, {Name: "GOTOOLCHAIN", Value: "local"},
					{Name: "GOTELEMETRY", Value: "off"}, {Name: "GOFLAGS", Value: "-p=2"},
					{Name: "GOCACHE", Value: "/tmp/go-cache"}}}},
			Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		}},
	})
}
