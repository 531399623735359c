// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/modelserver"
)

var toolchain = cmp.Or(os.Getenv("TOOLCHAIN_IMAGE"), "parley.dev/toolchain:dev")

// The program that the model writes, with a fault in it, and its test.
const (
	program = `package main

import (
	"fmt"
	"log"
	"net/http"
)

func Sum(numbers ...int) (total int) {
	for n := range numbers {
		total += n
	}
	return total
}

func main() {
	http.HandleFunc("GET /sum", func(w http.ResponseWriter, r *http.Request) {
		log.Print("asked for ", r.URL.Path)
		fmt.Fprintln(w, "the sum is", Sum(1, 2, 3))
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:8090", nil))
}
`
	programTest = `package main

import "testing"

func TestSum(t *testing.T) {
	if got := Sum(1, 2, 3); got != 6 {
		t.Errorf("the sum is %d, want 6", got)
	}
}
`
)

// goTemplate is a template with a Go toolchain, which fetches nothing.
func (w *world) goTemplate() {
	w.t.Helper()
	w.create(&corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "go",
			Labels:      map[string]string{v1alpha1.LabelWorkspaceTemplate: "true"},
			Annotations: map[string]string{v1alpha1.AnnotationDescription: "A Go toolchain."}},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(5)),
			Containers: []corev1.Container{{Name: v1alpha1.WorkspaceContainer, Image: toolchain, Env: []corev1.EnvVar{
				{Name: "CGO_ENABLED", Value: "0"}, {Name: "GOPROXY", Value: "off"}, {Name: "GOTOOLCHAIN", Value: "local"},
				{Name: "GOTELEMETRY", Value: "off"}, {Name: "GOFLAGS", Value: "-p=2"}},
				VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}}}},
			Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		}},
	})
}

func TestAModelWritesAProgramMendsItServesItAndComesBackToIt(t *testing.T) {
	steps := []struct {
		name      string
		arguments map[string]any
		want      []string
	}{
		{"list_templates", map[string]any{}, []string{"A Go toolchain."}},
		{"create_workspace", map[string]any{"template": "go"}, []string{`"template":"go"`}},
		{"write_file", map[string]any{"path": "go.mod", "content": "module example.com/sum\n\ngo 1.26\n"}, []string{`"created":true`}},
		{"write_file", map[string]any{"path": "main.go", "content": program}, []string{`"created":true`}},
		{"write_file", map[string]any{"path": "main_test.go", "content": programTest}, []string{`"created":true`}},
		{"execute", map[string]any{"command": "go test ./...", "timeout": 300},
			[]string{`"success":false`, `"exit_code":1`, "the sum is 3, want 6"}},
		{"edit_files", map[string]any{"edits": []map[string]any{
			{"path": "main.go", "old_text": "for n := range numbers", "new_text": "for _, n := range numbers"}}},
			[]string{`+\tfor _, n := range numbers`}},
		{"execute", map[string]any{"command": "go test ./...", "timeout": 300}, []string{`"exit_code":0`, `ok  \texample.com/sum`}},
		{"execute", map[string]any{"command": "go build -o server . && exec ./server 2>server.log", "run_in_background": true},
			[]string{"background_process_id"}},
		{"execute", map[string]any{"timeout": 300, "command": "until wget -qO- http://127.0.0.1:8090/sum 2>/dev/null; do sleep 1; done"},
			[]string{"the sum is 6", `"exit_code":0`}},
		{"read_file", map[string]any{"path": "server.log"}, []string{"asked for /sum"}},
		{"process_list", map[string]any{}, []string{`"state":"running"`, "exec ./server"}},
		{"stop_workspace", map[string]any{}, []string{`"stopping":true`}},
		{"process_list", map[string]any{}, []string{`"processes":`}},
		{"execute", map[string]any{"command": "ls; go test ./...", "timeout": 300},
			[]string{`main_test.go\nserver\nserver.log`, `ok  \texample.com/sum`}},
	}
	var calls []modelserver.ToolCall
	for _, step := range steps {
		calls = append(calls, callOf(step.name, step.arguments))
	}
	w := newWorld(t, works(calls...))
	w.goTemplate()
	w.create(&v1alpha1.Chat{ObjectMeta: w.meta("c"), Spec: v1alpha1.ChatSpec{Prompt: "Write a server that sums.",
		Workspace: &v1alpha1.WorkspaceSource{PodTemplateSelector: &v1alpha1.WorkspaceTemplateSelector{
			Storage: &v1alpha1.WorkspaceStorage{Size: "1Gi"}}}}})
	w.ready("c", int64(2*len(steps)+2))
	for i, got := range w.results("c") {
		for _, want := range steps[i].want {
			if !strings.Contains(got.Output, want) || got.IsError {
				t.Errorf("result %d of %s is %q (an error: %t), want %q in it", i, got.Name, got.Output, got.IsError, want)
			}
		}
	}
}
