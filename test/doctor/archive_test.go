// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// marker is in every text that a person can write.
const marker = "MARKER"

// objects is the folder of the objects of API groups in an archive.
const objects = "objects/apis/"

// marked puts the marker into the labels and annotations of an object.
func marked[T client.Object](o T) T {
	o.SetLabels(map[string]string{marker: marker})
	o.SetAnnotations(map[string]string{marker: marker})
	return o
}

// plantMarkers creates an object of each kind in which people write.
func (i *installation) plantMarkers() {
	i.t.Helper()
	chat := chattest.Chat("triage", chattest.Prompt(marker), func(c *v1beta1.Chat) {
		c.Spec.Title, c.Spec.SystemPrompt = marker, marker
	})
	objects := []client.Object{marked(chat),
		marked(chattest.User("triage", "question", chattest.Content(marker))),
		marked(chattest.Brings("triage", "results", v1beta1.ToolResult{ID: "call", Name: marker, Output: marker})),
		marked(chattest.Class("coder", func(s *v1beta1.ChatClassSpec) { s.Preamble = marker })),
		marked(chattest.Config("proxied", func(s *v1beta1.ChatModelConfigSpec) {
			s.BaseURL = "http://model.invalid/" + marker
			s.Headers = []v1beta1.Header{{Name: "X-Key", Value: marker}}
		})),
	}
	decision := chattest.Decides("triage", "decision", marker, v1beta1.DecisionDeny)
	decision.Spec.Comment = marker
	for _, o := range append(objects, marked(decision)) {
		cluster.Create(i.t, chattest.In(i.namespace, o))
	}
	chat.Status.Phase, chat.Status.Title, chat.Status.LastReply = v1beta1.ChatRequiresAction, marker, marker
	chat.Status.History = v1beta1.HistoryStatus{Length: 1, Head: "question"}
	chat.Status.Turn = &v1beta1.TurnStatus{Message: "question", Summary: marker}
	chat.Status.RequiresAction = &v1beta1.RequiresActionStatus{Message: "question", Deadline: metav1.Now(),
		ToolCalls: []v1beta1.PendingToolCall{{ID: "call", Name: "tool", Kind: v1beta1.RequiresClient,
			Input: `"` + marker + `"`}}}
	i.report(chat)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "parley-manager-0"}}
	i.get(pod)
	extra := pod.DeepCopy()
	extra.ObjectMeta = metav1.ObjectMeta{Namespace: system, Name: "parley-manager-marked",
		Labels: pod.Labels, Annotations: map[string]string{marker: marker}}
	container := &extra.Spec.Containers[0]
	container.Args = []string{"--https-proxy=http://user:" + marker + "@proxy"}
	container.Env = append(container.Env, corev1.EnvVar{Name: "HTTPS_PROXY", Value: marker})
	extra.Spec.NodeName, extra.ResourceVersion = "", ""
	i.create(extra)
}

// unpack reads the files of an archive.
func unpack(t *testing.T, name string) map[string]string {
	t.Helper()
	file, err := os.Open(name)
	check.OK(t, err)
	defer func() { _ = file.Close() }() // It is read.
	compressed, err := gzip.NewReader(file)
	check.OK(t, err)
	files := map[string]string{}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		check.OK(t, err)
		content, err := io.ReadAll(archive)
		check.OK(t, err)
		files[strings.TrimPrefix(header.Name, "parley/")] = string(content)
	}
}

func TestArchiveHasNoContentAndNoKeys(t *testing.T) {
	i := newInstallation(t)
	i.plantMarkers()
	name := filepath.Join(t.TempDir(), "support.tar.gz")
	i.reports(0, " 0 failed")
	_, out := i.run("--bundle", name)
	check.Contains(t, out, "wrote support archive "+name)
	files := unpack(t, name)
	for file, want := range map[string]string{
		"report.json":   `"checks"`,
		"versions.json": `"gitVersion": "v1.`,
		objects + "parley.dev/v1beta1/namespaces/" + i.namespace + "/chats.json":            `"phase": "RequiresAction"`,
		objects + "parley.dev/v1beta1/namespaces/" + i.namespace + "/chatmessages.json":     `"name": "question"`,
		objects + "parley.dev/v1beta1/namespaces/" + i.namespace + "/chatmodelconfigs.json": `"reason": "Accepted"`,
		objects + "parley.dev/v1beta1/namespaces/" + i.namespace + "/chatclasses.json":      `"name": "coder"`,
		objects + "parley.dev/v1beta1/namespaces/" + i.namespace + "/toolapprovals.json":    `"name": "decision"`,
		"objects/api/v1/namespaces/" + system + "/pods.json":                                `"name": "parley-manager-0"`,
		objects + "apiextensions.k8s.io/v1/customresourcedefinitions.json":                  `"name": "chats.parley.dev"`,
		objects + "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings.json":  `"Deny"`,
		objects + "admissionregistration.k8s.io/v1/mutatingadmissionpolicies.json":          `"name": "parley-created-by"`,
		"logs/" + system + "/parley-manager-0/manager.log":                                  "",
	} {
		if content, has := files[file]; !has || !strings.Contains(content, want) {
			t.Errorf("%s lacks %s: %s", file, want, content)
		}
	}
	for file, content := range files {
		check.Lacks(t, file+": "+content, marker)
	}
	info, err := os.Stat(name)
	check.OK(t, err)
	check.Equal(t, "mode of the file", "-rw-------", info.Mode().String())
	if code, out := i.run("--bundle", name); code != 1 || !strings.Contains(out, "file exists") ||
		strings.Contains(out, "Manager") { // Nothing was examined.
		t.Errorf("a second archive ends with %d: %s", code, out)
	}
}

func TestArchiveListsWhatCannotBeRead(t *testing.T) {
	i := newInstallation(t)
	name := filepath.Join(t.TempDir(), "support.tar.gz")
	_, out := run(t, "doctor", "--kubeconfig", i.person(), "--bundle", name)
	check.Contains(t, out, "parts could not be read: see errors.txt in the archive")
	files := unpack(t, name)
	check.Contains(t, files["errors.txt"], objects+"apiextensions.k8s.io/v1/customresourcedefinitions.json: ")
	check.Contains(t, files[objects+"parley.dev/v1beta1/namespaces/"+i.namespace+"/chatmodelconfigs.json"],
		`"name": "small"`)
}
