// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestUninstallLeavesNothingInAnyOrder removes a part of Parley before the commands of the documentation.
func TestUninstallLeavesNothingInAnyOrder(t *testing.T) {
	for name, first := range map[string][][]string{
		"as documented":           nil,
		"manager and definitions": {{"deployments", "--all", "--namespace=" + system, "--cascade=foreground"}, definitions},
		"definitions":             {definitions},
		"namespace of Parley":     {{"namespace", system}},
		"namespace of chats":      {{"namespace", "chats"}},
	} {
		t.Run(name, func(t *testing.T) {
			newNamespace(t, system)
			newWorld(t, "chats")
			way := kustomized(manifest)
			documented := way.uninstall
			var logs *logs
			way.uninstall = func(t *testing.T) {
				logs.skip(t)
				for _, args := range first {
					kubectl(t, append([]string{"delete", "--timeout=2m"}, args...)...)
				}
				documented(t)
				logs.check(t)
			}
			way.set(t)
			logs = followLogs(t)
			keepBusy(t, "chats")
		})
	}
}

// definitions are the arguments that delete the resource definitions.
var definitions = []string{"crd", "--selector=app.kubernetes.io/name=parley"}

// busyChats are a chat with a stream, one with a budget whose sub-chat is at work, one whose command runs in a
// workspace with a volume, and one that waits for approval.
const busyChats = `
apiVersion: parley.dev/v1beta1
kind: Chat
metadata: {name: streaming}
spec: {prompt: Speak endlessly.}
---
apiVersion: parley.dev/v1beta1
kind: Chat
metadata: {name: paying}
spec: {prompt: Speak endlessly., limits: {budget: {currency: USD, amount: "1"}}}
---
apiVersion: parley.dev/v1beta1
kind: Chat
metadata: {name: paid}
spec: {prompt: Speak endlessly., parentRef: {name: paying}}
---
apiVersion: parley.dev/v1beta1
kind: Chat
metadata: {name: executing}
spec: {prompt: Work for long., workspace: {podTemplateRef: {name: shell, storage: {size: 10Mi}}}}
---
apiVersion: parley.dev/v1beta1
kind: Chat
metadata: {name: asking}
spec: {prompt: Work., workspace: {podTemplateRef: {name: shell}}, tools: {approval: [execute]}}
`

// keepBusy creates chats, and waits until all are at work and somebody follows one.
func keepBusy(t *testing.T, namespace string) {
	t.Helper()
	askModel(t, namespace)
	awaitAnswer(t, namespace)
	apply(t, namespace, busyChats)
	eventually(t, "all chats are at work", func() bool {
		got := kubectl(t, "-n", namespace, "get", "chats", "paying", "paid", "executing", "asking",
			"-o=jsonpath={range .items[*]}{.metadata.name} {.status.phase} {.status.generation.action}; {end}")
		return got == "paying Running GenerateAssistant; paid Running GenerateAssistant; "+
			"executing Running ExecuteTools; asking RequiresAction ;"
	})
	eventually(t, "the command runs", func() bool {
		return kubectl(t, "-n", namespace, "get", "workspace", "executing", "-o=jsonpath={.status.phase}") == "Ready"
	})
	person(t, namespace)
	follow(t, namespace, kubectl(t, "-n", namespace, "create", "token", "person"))
}

// follow opens the stream of a chat, and reads it until it ends.
func follow(t *testing.T, namespace, token string) {
	t.Helper()
	address := kubectl(t, "-n", system, "get", "pods", "-l=app.kubernetes.io/component=gateway",
		"-o=jsonpath={.items[0].status.podIP}")
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("http://%s:8080/v1beta1/namespaces/%s/chats/streaming/stream", address, namespace), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = response.Body.Close() // It has ended with the gateway.
	})
	awaitLine(t, bufio.NewScanner(response.Body), "First. ")
}

// logs are what the manager and the gateway log until they end.
type logs struct {
	commands []*exec.Cmd
	// files have the logs, and skipped is how much of each is not checked.
	files   []string
	skipped []int64
}

// followLogs reads the logs of the pods that run.
func followLogs(t *testing.T) *logs {
	t.Helper()
	l := &logs{}
	for pod := range strings.FieldsSeq(kubectl(t, "-n", system, "get", "pods", "-o=name")) {
		command := exec.CommandContext(context.WithoutCancel(t.Context()), os.Getenv("KUBECTL"),
			"-n", system, "logs", "--follow", "--all-containers", pod)
		file, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		command.Stdout = file
		if err := errors.Join(command.Start(), file.Close()); err != nil {
			t.Fatal(err)
		}
		l.commands, l.files = append(l.commands, command), append(l.files, file.Name())
	}
	return l
}

// skip ignores what was logged so far.
func (l *logs) skip(t *testing.T) {
	t.Helper()
	for _, name := range l.files {
		file, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		l.skipped = append(l.skipped, file.Size())
	}
}

// errorLine matches lines of the level ERROR, and those of programs that end in disorder.
var errorLine = regexp.MustCompile(`(?m)^.*"level":"ERROR".*$|^E\d{4} .*$|^(panic|manager|gateway): .*$`)

// check waits until the pods have ended, and checks that they logged no errors.
func (l *logs) check(t *testing.T) {
	t.Helper()
	for i, command := range l.commands {
		if err := command.Wait(); err != nil {
			t.Errorf("%s: %v", strings.Join(command.Args, " "), err)
		}
		text, err := os.ReadFile(l.files[i])
		if err != nil || !strings.Contains(string(text), `"level":"`) {
			t.Errorf("%s printed %q: %v", strings.Join(command.Args, " "), text, err)
			continue
		}
		for _, line := range errorLine.FindAllString(string(text[l.skipped[i]:]), -1) {
			t.Error(line)
		}
	}
}

// object is what says whether an object is Parley's.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string            `json:"name"`
		Namespace       string            `json:"namespace"`
		Labels          map[string]string `json:"labels"`
		OwnerReferences []struct {
			APIVersion string `json:"apiVersion"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
}

func (o *object) isOfParley() bool {
	of := o.APIVersion + o.Metadata.Name + o.Metadata.Labels["app.kubernetes.io/name"]
	for _, owner := range o.Metadata.OwnerReferences {
		of += owner.APIVersion
	}
	return strings.Contains(of, "parley") || o.Metadata.Labels["parley.dev/component"] != ""
}

// checkNothingIsLeft checks that the API server has no object of Parley, nor one that an object of Parley owns.
func checkNothingIsLeft(t *testing.T) {
	t.Helper()
	var left []string
	defer func() { t.Log("left in the end:", left) }()
	eventually(t, "no object of Parley is left", func() bool {
		left = nil
		kinds := kubectl(t, "api-resources", "--verbs=list,delete", "-o=name")
		kinds = strings.ReplaceAll(strings.ReplaceAll(kinds, "events\n", ""), "events.events.k8s.io\n", "")
		var all struct{ Items []object }
		text, err := try(t, "", "get", strings.ReplaceAll(kinds, "\n", ","), "--all-namespaces", "--ignore-not-found",
			"-o=json")
		if err != nil || text != "" && json.Unmarshal([]byte(text), &all) != nil {
			return false // A resource definition has just been deleted.
		}
		for _, o := range all.Items {
			if o.isOfParley() {
				left = append(left, strings.Join([]string{o.Kind, o.Metadata.Namespace, o.Metadata.Name}, "/"))
			}
		}
		return len(left) == 0
	})
}
